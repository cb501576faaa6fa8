package webhooks

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	demov1 "ctrlmesh.io/test/operators/go-webhooks/api/v1"
)

const (
	// DefaultedBy is the annotation with the pod that has answered the last defaulting review.
	DefaultedBy = "demo.ctrlmesh.io/defaulted-by"
	// DefaultedReview is the annotation with the uid of that review.
	DefaultedReview = "demo.ctrlmesh.io/defaulted-review"
	// refused begins a message that validation refuses.
	refused = "refuse"
)

// Gadgets defaults and validates Gadgets. A review is recorded just before it is answered.
type Gadgets struct {
	PodName string
	Record  func(ctx context.Context, kind string)
}

var _ admission.Defaulter[*demov1.Gadget] = &Gadgets{}
var _ admission.Validator[*demov1.Gadget] = &Gadgets{}

// Default implements admission.Defaulter.
func (g *Gadgets) Default(ctx context.Context, gadget *demov1.Gadget) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if gadget.Spec.Message == "" {
		gadget.Spec.Message = "hello"
	}
	if gadget.Annotations == nil {
		gadget.Annotations = map[string]string{}
	}
	gadget.Annotations[DefaultedBy] = g.PodName
	gadget.Annotations[DefaultedReview] = string(request.UID)
	g.Record(ctx, "default")
	return nil
}

// ValidateCreate implements admission.Validator.
func (g *Gadgets) ValidateCreate(ctx context.Context, gadget *demov1.Gadget) (admission.Warnings, error) {
	return g.validate(ctx, gadget.Spec.Message)
}

// ValidateUpdate implements admission.Validator.
func (g *Gadgets) ValidateUpdate(ctx context.Context, _, gadget *demov1.Gadget) (admission.Warnings, error) {
	return g.validate(ctx, gadget.Spec.Message)
}

// ValidateDelete implements admission.Validator.
func (g *Gadgets) ValidateDelete(ctx context.Context, _ *demov1.Gadget) (admission.Warnings, error) {
	return g.validate(ctx, "")
}

func (g *Gadgets) validate(ctx context.Context, message string) (admission.Warnings, error) {
	g.Record(ctx, "validate")
	if strings.HasPrefix(message, refused) {
		return nil, fmt.Errorf("%s refuses the message", g.PodName)
	}
	return admission.Warnings{"validated by " + g.PodName}, nil
}
