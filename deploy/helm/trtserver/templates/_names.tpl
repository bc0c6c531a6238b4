{{/* Names and labels that the objects share. */}}

{{- define "trtserver.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "trtserver.selector" -}}
app.kubernetes.io/name: trtserver
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "trtserver.metadata" -}}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "trtserver.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "trtserver.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- if .root.Values.tls.enabled }}
  scheme: HTTPS
  {{- end }}
{{- end -}}
