{{/* The prefix of all names: short enough for the longest suffix, and for the 52 characters of a CronJob's name. */}}
{{- define "plegwatch.name" -}}
{{- $name := ternary .Release.Name (printf "%s-plegwatch" .Release.Name) (contains "plegwatch" .Release.Name) -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Labels that never change, for selectors. Arguments: root (the top-level context), component. */}}
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

{{/* The security context of every container. */}}
{{- define "plegwatch.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The security context of every pod but the agent's. */}}
{{- define "plegwatch.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/*
Fails if a URL has two sources, none although one is required, or the wrong scheme; never prints the URL, which may hold a
password. Arguments: at (path of the values), from (the values), scheme (regular expression), example, needed (boolean).
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

{{/* "yes" if a URL has a source, else empty. */}}
{{- define "plegwatch.hasSource" -}}
{{- if or .url .existingSecret }}yes{{ end -}}
{{- end }}

{{/*
An environment variable from a Secret. Arguments: variable (its name), from (values with existingSecret), chartSecret (the Secret of
this chart, used without existingSecret).
*/}}
{{- define "plegwatch.secretVariable" -}}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ default .chartSecret .from.existingSecret }}
      key: {{ ternary .from.existingSecretKey "url" (ne .from.existingSecret "") }}
{{- end }}

{{/* The values of the owner's URL, as JSON. */}}
{{- define "plegwatch.ownerSource" -}}
{{- $database := .Values.database -}}
{{- ternary $database.owner (omit $database "owner") (eq "yes" (include "plegwatch.hasSource" $database.owner)) | toJson -}}
{{- end }}
