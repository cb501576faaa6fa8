{{/* What all objects carry. */}}
{{- define "ctrlmesh.labels" -}}
app.kubernetes.io/name: ctrlmesh
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What selects the manager's pods. It cannot change: a Deployment's selector is immutable. */}}
{{- define "ctrlmesh.selector" -}}
app.kubernetes.io/name: ctrlmesh
app.kubernetes.io/component: manager
{{- end }}

{{/* An image's name; the context is a list of the image's values and the chart. */}}
{{- define "ctrlmesh.image" -}}
{{- $image := index . 0 -}}
{{- $chart := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The Secret that provides the mesh's CA; empty: the manager makes one. */}}
{{- define "ctrlmesh.caSecret" -}}
{{- if .Values.identity.certManager.enabled -}}
{{ .Values.identity.certManager.secretName }}
{{- else -}}
{{ .Values.identity.caSecret }}
{{- end -}}
{{- end }}
