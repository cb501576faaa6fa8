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

{{/* Seconds of a duration such as 43800h or 1h30m, as the schema lets them through. */}}
{{- define "ctrlmesh.seconds" -}}
{{- $part := dict "h" 0 "m" 0 "s" 0 -}}
{{- range regexFindAll "[0-9]+[hms]" . -1 -}}
{{- $_ := set $part (substr (sub (len .) 1 | int) (len .) .) (regexFind "[0-9]+" . | int64) -}}
{{- end -}}
{{- add (mul 3600 (get $part "h")) (mul 60 (get $part "m")) (get $part "s") -}}
{{- end }}
