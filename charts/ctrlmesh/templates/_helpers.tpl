{{/* The labels of all objects. */}}
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

{{/* The labels that select the manager's pods. They must not change: a Deployment's selector is immutable. */}}
{{- define "ctrlmesh.selector" -}}
app.kubernetes.io/name: ctrlmesh
app.kubernetes.io/component: manager
{{- end }}

{{/* The name of an image. The context is a list of the image's values and the chart. */}}
{{- define "ctrlmesh.image" -}}
{{- $image := index . 0 -}}
{{- $chart := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The name of the Secret with the mesh's CA. If empty, the manager creates a CA. */}}
{{- define "ctrlmesh.caSecret" -}}
{{- if .Values.identity.certManager.enabled -}}
{{ .Values.identity.certManager.secretName }}
{{- else -}}
{{ .Values.identity.caSecret }}
{{- end -}}
{{- end }}

{{/* The seconds of a duration such as 43800h or 1h30m, in the format that the schema allows. */}}
{{- define "ctrlmesh.seconds" -}}
{{- $part := dict "h" 0 "m" 0 "s" 0 -}}
{{- range regexFindAll "[0-9]+[hms]" . -1 -}}
{{- $_ := set $part (substr (sub (len .) 1 | int) (len .) .) (regexFind "[0-9]+" . | int64) -}}
{{- end -}}
{{- add (mul 3600 (get $part "h")) (mul 60 (get $part "m")) (get $part "s") -}}
{{- end }}
