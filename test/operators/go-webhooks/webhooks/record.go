package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// record is a line about an answered review.
type record struct {
	// Review is "default", "validate" or "convert".
	Review    string `json:"review"`
	UID       string `json:"uid"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Operation string `json:"operation,omitempty"`
	DryRun    bool   `json:"dryRun,omitempty"`
	// AtMs is the time in milliseconds since 1970.
	AtMs int64 `json:"atMs"`
}

// records prints a JSON line for each review.
type records struct {
	mu  sync.Mutex
	out io.Writer
}

func (r *records) print(line record) {
	line.AtMs = time.Now().UnixMilli()
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(r.out).Encode(line)
}

func (r *records) ofReview(ctx context.Context, review string) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return
	}
	dryRun := request.DryRun != nil && *request.DryRun
	r.print(record{Review: review, UID: string(request.UID), Namespace: request.Namespace, Name: request.Name,
		Operation: string(request.Operation), DryRun: dryRun})
}

// ofConversions prints the uid of each conversion review before `next` answers it.
func (r *records) ofConversions(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review := struct{ Request struct{ UID string } }{}
		if json.Unmarshal(body, &review) == nil {
			r.print(record{Review: "convert", UID: review.Request.UID})
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, request)
	})
}
