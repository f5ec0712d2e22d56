{{- define "mo.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "mo.selector" -}}
app.kubernetes.io/name: mcp-orchestrator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mo.labels" -}}
{{ include "mo.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* The configuration file: what the chart sets, then .Values.config. */ -}}
{{- define "mo.config" -}}
{{- $box := dict "namespace" .Values.boxes.namespace "image" .Values.boxes.image -}}
{{- if .Values.boxes.claims.enabled -}}
{{- $_ := set $box "claims" true -}}
{{- with .Values.boxes.claims.storageClass -}}
{{- $_ := set $box "storageClass" . -}}
{{- end -}}
{{- end -}}
{{- $all := dict
      "server" (dict "listen" "0.0.0.0" "port" 3000)
      "sandbox" (dict "driver" "kubernetes" "warm" (int .Values.boxes.warm) "kubernetes" $box) -}}
{{- if .Values.redis -}}
{{- $_ := set $all.server "token" "${env:MO_TOKEN}" -}}
{{- $_ := set $all "store" (dict "url" "${env:MO_REDIS_URL}") -}}
{{- $_ := set $all "cluster" (dict "listen" "0.0.0.0:8788" "address" "${env:POD_IP}" "key" "${env:MO_CLUSTER_KEY}") -}}
{{- end -}}
{{- mergeOverwrite $all (deepCopy .Values.config) | toPrettyJson -}}
{{- end -}}
