{{/* The name that every object begins with: short enough for the longest ending and for a CronJob's 52 characters. */}}
{{- define "plegwatch.name" -}}
{{- $name := ternary .Release.Name (printf "%s-plegwatch" .Release.Name) (contains "plegwatch" .Release.Name) -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Labels that never change. Called with (dict "root" $ "component" …). */}}
{{- define "plegwatch.selector" -}}
app.kubernetes.io/name: plegwatch
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "plegwatch.labels" -}}
{{ include "plegwatch.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "plegwatch.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
image: {{ printf "%s@%s" .repository .digest | quote }}
{{- else -}}
image: {{ printf "%s:%s" .repository (default $.Chart.AppVersion .tag) | quote }}
{{- end }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
{{- end }}

{{/* What no program of ours needs. */}}
{{- define "plegwatch.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* For every pod but the agent's. */}}
{{- define "plegwatch.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/*
Refuses two sources, none where one is needed, and a URL of another kind (without printing it).
Called with (dict "at" path "from" values "scheme" pattern "example" text "needed" bool).
*/}}
{{- define "plegwatch.checkSource" -}}
{{- if and .from.url .from.existingSecret -}}
{{- fail (printf "set either %s.url or %s.existingSecret, not both" .at .at) -}}
{{- else if and .needed (not .from.url) (not .from.existingSecret) -}}
{{- fail (printf "%s is required: set %s.url or %s.existingSecret" .at .at .at) -}}
{{- else if and .from.url (not (regexMatch (printf "^%s://\\S+$" .scheme) .from.url)) -}}
{{- fail (printf "%s.url must be a URL such as %s" .at .example) -}}
{{- end -}}
{{- end }}

{{/* Yes where a source is given. */}}
{{- define "plegwatch.isGiven" -}}
{{- if or .url .existingSecret }}yes{{ end -}}
{{- end }}

{{/* A variable out of a Secret: the one named, or the one this chart makes. Called with (dict "variable" … "from" … "made" …). */}}
{{- define "plegwatch.secretVariable" -}}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ default .made .from.existingSecret }}
      key: {{ ternary .from.existingSecretKey "url" (ne .from.existingSecret "") }}
{{- end }}

{{/* The owner's URL, as values. */}}
{{- define "plegwatch.ownerSource" -}}
{{- $database := .Values.database -}}
{{- ternary $database.owner (omit $database "owner") (eq "yes" (include "plegwatch.isGiven" $database.owner)) | toJson -}}
{{- end }}
