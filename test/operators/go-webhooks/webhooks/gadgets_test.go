package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	demov1 "ctrlmesh.io/test/operators/go-webhooks/api/v1"
)

func TestDefaultStampsAndRecords(t *testing.T) {
	out := &bytes.Buffer{}
	gadgets := &Gadgets{PodName: "pod-0", Record: (&records{out: out}).ofReview}
	dryRun := true
	ctx := admission.NewContextWithRequest(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "u-1", Namespace: "team-a", Name: "one", Operation: admissionv1.Create, DryRun: &dryRun}})
	gadget := &demov1.Gadget{}
	if err := gadgets.Default(ctx, gadget); err != nil {
		t.Fatal(err)
	}
	if gadget.Spec.Message != "hello" || gadget.Annotations[DefaultedBy] != "pod-0" || gadget.Annotations[DefaultedReview] != "u-1" {
		t.Errorf("defaulted to %+v", gadget)
	}
	got := record{}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	got.AtMs = 0
	want := record{Review: "default", UID: "u-1", Namespace: "team-a", Name: "one", Operation: "CREATE", DryRun: true}
	if got != want {
		t.Errorf("recorded %+v", got)
	}
}

func TestValidationRefusesAMessage(t *testing.T) {
	gadgets := &Gadgets{PodName: "pod-0", Record: func(context.Context, string) {}}
	good := &demov1.Gadget{Spec: demov1.GadgetSpec{Message: "good"}}
	bad := &demov1.Gadget{Spec: demov1.GadgetSpec{Message: "refuse this"}}
	if warnings, err := gadgets.ValidateCreate(context.Background(), good); err != nil || warnings[0] != "validated by pod-0" {
		t.Error(warnings, err)
	}
	if _, err := gadgets.ValidateUpdate(context.Background(), good, bad); err == nil || err.Error() != "pod-0 refuses the message" {
		t.Error(err)
	}
	if _, err := gadgets.ValidateDelete(context.Background(), bad); err != nil {
		t.Error(err)
	}
}
