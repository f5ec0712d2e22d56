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

{{- /* Seconds in which a pod that ends still serves: nodes and proxies send clients
       to it until they know. A server without Redis is the only one. */ -}}
{{- define "mo.drain" -}}
{{- $server := .Values.config.server | default dict -}}
{{- if hasKey $server "drainSeconds" -}}
{{- int $server.drainSeconds -}}
{{- else if .Values.redis -}}
10
{{- else -}}
0
{{- end -}}
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
{{- $_ := set $all.server "drainSeconds" (include "mo.drain" . | int) -}}
{{- $_ := set $all "store" (dict "url" "${env:MO_REDIS_URL}") -}}
{{- $_ := set $all "cluster" (dict "listen" "0.0.0.0:8788" "address" "${env:POD_IP}" "key" "${env:MO_CLUSTER_KEY}") -}}
{{- end -}}
{{- /* Its TLS ends before the server, which sees plain http. */ -}}
{{- if and .Values.ingress.enabled (not (contains "*" .Values.ingress.host)) -}}
{{- $url := printf "https://%s" .Values.ingress.host -}}
{{- $_ := set $all.server "origins" (list $url) -}}
{{- $_ := set $all "people" (dict "url" $url) -}}
{{- end -}}
{{- mergeOverwrite $all (deepCopy .Values.config) | toPrettyJson -}}
{{- end -}}
