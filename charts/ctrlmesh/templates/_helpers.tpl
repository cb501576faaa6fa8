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

{{/*
The annotations of an object, with their key, or nothing. The context is a list of the root and the object's own annotations.
*/}}
{{- define "ctrlmesh.annotations" -}}
{{- $root := index . 0 -}}
{{- with merge (dict) (index . 1 | default dict) ($root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
The name of an image. The context is a list of the root and the image's values. A repository that begins with a host, as in older values, needs no
registry. There is no default registry: a name without one belongs to whoever takes it on the public hub.
*/}}
{{- define "ctrlmesh.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $registry := coalesce (dig "imageRegistry" "" ($root.Values.global | default dict)) $image.registry $root.Values.image.registry -}}
{{- $repository := $image.repository -}}
{{- $hasHost := regexMatch "^(localhost|[^/]*[.:][^/]*)/" $repository -}}
{{- if and $registry (not $hasHost) -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" $registry) $repository -}}
{{- else if not $hasHost -}}
{{- fail "set image.registry: there are no published images yet; docs/tasks/build-images.md says how to build them" -}}
{{- end -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The names of pull secrets, as a list in JSON. */}}
{{- define "ctrlmesh.pullSecrets" -}}
{{- $names := list -}}
{{- range . -}}
{{- $names = append $names .name -}}
{{- end -}}
{{ toJson $names }}
{{- end }}

{{- define "ctrlmesh.serviceAccount" -}}
{{ .Values.serviceAccount.name | default "ctrlmesh-manager" }}
{{- end }}

{{/* A duration in milliseconds. The context is a list of a map of values and the name of the duration in it. */}}
{{- define "ctrlmesh.milliseconds" -}}
{{ mul 1000 (include "ctrlmesh.seconds" (get (index . 0) (index . 1)) | int64) }}
{{- end }}

{{/* The annotations that pods without their own have (the manager's --proxy-defaults), as JSON. */}}
{{- define "ctrlmesh.proxyDefaults" -}}
{{- $proxy := .Values.proxy -}}
{{- $resources := $proxy.resources | default dict -}}
{{- $all := dict
  "proxy-cpu" (dig "requests" "cpu" "" $resources)
  "proxy-memory" (dig "requests" "memory" "" $resources)
  "proxy-cpu-limit" (dig "limits" "cpu" "" $resources)
  "proxy-memory-limit" (dig "limits" "memory" "" $resources)
  "proxy-log-level" (eq $proxy.logLevel "info" | ternary "" $proxy.logLevel)
  "proxy-env.CTRLMESH_ACCESS_LOG" (eq (toString $proxy.accessLog) "false" | ternary "" $proxy.accessLog)
  "intercept" (eq $proxy.intercept "env" | ternary "" $proxy.intercept)
  "native-sidecar" $proxy.nativeSidecar
-}}
{{- $set := dict -}}
{{- range $name, $value := $all -}}
{{- if not (has (toString $value) (list "" "<nil>")) -}}
{{- $_ := set $set $name (toString $value) -}}
{{- end -}}
{{- end -}}
{{- if $set -}}
{{ toJson $set }}
{{- end -}}
{{- end }}

{{/* The families of each labelled resource (the manager's --label-families), as JSON. */}}
{{- define "ctrlmesh.labelFamilies" -}}
{{- $families := dict -}}
{{- range .Values.rbac.labelObjects -}}
{{- $name := ternary .resource (printf "%s.%s" .resource .group) (eq .group "") -}}
{{- $_ := set $families $name (concat (get $families $name | default list) .families) -}}
{{- end -}}
{{- if $families -}}
{{ toJson $families }}
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

{{/* The relabelings of a monitor's endpoint. */}}
{{- define "ctrlmesh.relabelings" -}}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
