// Package webhooks defaults, validates and converts Gadgets: add.go has the paths, gadgets.go the rules, record.go what is printed about
// each review.
package webhooks

import (
	"io"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	demov1 "ctrlmesh.io/test/operators/go-webhooks/api/v1"
)

// AddToManager serves /mutate-demo-ctrlmesh-io-v1-gadget, /validate-demo-ctrlmesh-io-v1-gadget and /convert, and prints each answered
// review to `out`.
func AddToManager(mgr ctrl.Manager, podName string, out io.Writer) error {
	records := &records{out: out}
	mgr.GetWebhookServer().Register("/convert", records.ofConversions(
		conversion.NewWebhookHandler(mgr.GetScheme(), mgr.GetConverterRegistry())))
	gadgets := &Gadgets{PodName: podName, Record: records.ofReview}
	return ctrl.NewWebhookManagedBy(mgr, &demov1.Gadget{}).
		WithDefaulter(gadgets).
		WithValidator(gadgets).
		Complete()
}
