{{- define "plegwatch.appName" -}}
{{- default .Chart.Name .Values.nameOverride -}}
{{- end }}

{{/* The prefix of all names: short enough for the longest suffix, and for the 52 characters of a CronJob's name. */}}
{{- define "plegwatch.name" -}}
{{- $app := include "plegwatch.appName" . -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $app) (contains $app .Release.Name) -}}
{{- default $name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Labels that never change, for selectors. Arguments: root (the top-level context), component, pool (if the component has several). */}}
{{- define "plegwatch.selector" -}}
app.kubernetes.io/name: {{ include "plegwatch.appName" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .pool }}
plegwatch.dev/pool: {{ . }}
{{- end }}
{{- end }}

{{- define "plegwatch.labels" -}}
{{- $own := include "plegwatch.selector" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- merge $own .root.Values.commonLabels | toYaml -}}
{{- end }}

{{/* The labels of a pod. Arguments: those of plegwatch.labels, and more (labels from the values). */}}
{{- define "plegwatch.podLabels" -}}
{{- merge (include "plegwatch.selector" . | fromYaml) .more (include "plegwatch.labels" . | fromYaml) | toYaml -}}
{{- end }}

{{/* Arguments: image (values), tag (used if they have none). */}}
{{- define "plegwatch.imageOf" -}}
{{- with .image -}}
{{- if .digest -}}
image: {{ printf "%s@%s" .repository .digest | quote }}
{{- else -}}
image: {{ printf "%s:%s" .repository (default $.tag .tag) | quote }}
{{- end }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
{{- end }}

{{- define "plegwatch.image" -}}
{{- include "plegwatch.imageOf" (dict "image" .Values.image "tag" .Chart.AppVersion) -}}
{{- end }}

{{/* Where a pod may run. Arguments: root, from (values with tolerations and so on). */}}
{{- define "plegwatch.scheduling" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .from.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .from.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .from.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .from.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .from.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The same for pods beside the controller. */}}
{{- define "plegwatch.schedulingBeside" -}}
{{- include "plegwatch.scheduling" (dict "root" . "from" (pick .Values.controller "tolerations" "nodeSelector" "affinity")) -}}
{{- end }}

{{/* The security context of every container. */}}
{{- define "plegwatch.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The security context of the controller's pod and of the Jobs. */}}
{{- define "plegwatch.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The name of this cluster in the database. */}}
{{- define "plegwatch.cluster" -}}
{{- default (ternary "trial" "" .Values.trial.enabled) .Values.cluster -}}
{{- end }}

{{- define "plegwatch.agentNamespace" -}}
{{- default .Release.Namespace .Values.agent.namespace -}}
{{- end }}

{{/* Arguments: root, component (agent or controller). */}}
{{- define "plegwatch.serviceAccount" -}}
{{- default (printf "%s-%s" (include "plegwatch.name" .root) .component) (get .root.Values .component).serviceAccount.name -}}
{{- end }}

{{/* Whether agents enrol keys: true or nothing. The controller of another release could not read what they send. */}}
{{- define "plegwatch.enrols" -}}
{{- if and (not (has (toString .Values.attribution.mode) (list "off" "false"))) .Values.agent.enabled .Values.controller.enabled }}true{{ end -}}
{{- end }}

{{/* The Secret with the controller's keys, and the ConfigMap with their public halves. */}}
{{- define "plegwatch.keys" -}}
{{- include "plegwatch.name" . }}-keys
{{- end }}

{{/*
How the database is migrated: hook, init or off, which YAML reads as false unless it is quoted. The Postgres of a trial is
made after the hooks, so a trial cannot use one.
*/}}
{{- define "plegwatch.migrateMode" -}}
{{- $mode := ternary "off" .Values.migrate.mode (eq "false" (toString .Values.migrate.mode)) -}}
{{- ternary "init" $mode (and .Values.trial.enabled (eq $mode "hook")) -}}
{{- end }}

{{/* Where each runtime has its socket. */}}
{{- define "plegwatch.sockets" -}}
containerd: unix:///run/containerd/containerd.sock
crio: unix:///run/crio/crio.sock
k3s: unix:///run/k3s/containerd/containerd.sock
rke2: unix:///run/k3s/containerd/containerd.sock
microk8s: unix:///var/snap/microk8s/common/run/containerd.sock
k0s: unix:///run/k0s/containerd.sock
isulad: unix:///var/run/isulad.sock
{{- end }}

{{/*
The values of each DaemonSet of agents, as a JSON list: agentPools merged into agent, or a single one without a name. A runtime
or endpoint of a pool takes precedence over those of all.
*/}}
{{- define "plegwatch.pools" -}}
{{- $sockets := include "plegwatch.sockets" . | fromYaml -}}
{{- $pools := list -}}
{{- range default (list dict) .Values.agentPools -}}
{{- $pool := mergeOverwrite (deepCopy $.Values.agent) (deepCopy .) -}}
{{- $runtime := get $sockets (default $.Values.runtime .runtime) -}}
{{- $endpoint := ternary (default $runtime .criEndpoint) (default $runtime $pool.criEndpoint) (hasKey . "runtime") -}}
{{- $pools = append $pools (set $pool "socket" (trimPrefix "unix://" $endpoint)) -}}
{{- end -}}
{{- toJson $pools -}}
{{- end }}

{{/* A duration in milliseconds. */}}
{{- define "plegwatch.milliseconds" -}}
{{- $factors := dict "" 0.0 "ms" 1.0 "s" 1000.0 "m" 60000.0 "h" 3600000.0 -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (get $factors (regexFind "[a-z]+$" .)) -}}
{{- end }}

{{/*
Fails if there is no source of a URL although one is required, if a URL beside a Secret has a password, or if it has the wrong scheme;
never prints the URL. Arguments: at (path of the values), from (the values), scheme (regular expression), example, needed (boolean).
*/}}
{{- define "plegwatch.checkSource" -}}
{{- if and .from.url .from.existingSecret (regexMatch "://[^/@]*:[^/]*@" .from.url) -}}
{{- fail (printf "set either %s.url or %s.existingSecret, not both: beside a Secret, %s.url may only complete it, without a password" .at .at .at) -}}
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
How a service is reached, as JSON: name (of its Secret), keys (of the Secret, by the file that each is mounted as; empty: all keys, as
files of the same names), url (if the chart makes the Secret from it), base (a URL that completes the Secret), client (the Secret of a
client certificate). Arguments: root, of (redis, agent-redis, database, database-owner, ui-database, lake-database or fleet-database).
*/}}
{{- define "plegwatch.urlSecret" -}}
{{- $values := .root.Values -}}
{{- $of := .of -}}
{{- $tls := ternary $values.redis.tls $values.database.tls (hasSuffix "redis" $of) -}}
{{- $all := dict "redis" $values.redis "agent-redis" $values.redis.agent "database" $values.database "database-owner" $values.database.owner -}}
{{- $all = merge $all (dict "ui-database" $values.ui.database "lake-database" $values.lake.database "fleet-database" $values.federate.database) -}}
{{- $client := default $tls.clientSecret (get (get $all $of) "clientSecret") -}}
{{- if and (has $of (list "database-owner" "ui-database" "lake-database")) (not (include "plegwatch.hasSource" (get $all $of))) -}}{{- $of = "database" -}}{{- end -}}
{{- $from := get $all $of -}}
{{- $name := include "plegwatch.name" .root -}}
{{- if $values.trial.enabled -}}
{{- $isAgents := eq $of "agent-redis" -}}
{{- dict "name" (ternary (printf "%s-trial-agent" $name) (printf "%s-trial" $name) $isAgents) "keys" (dict "url" (printf "%s-url" (trimPrefix "agent-" $of))) | toJson -}}
{{- else if $from.existingSecret -}}
{{- dict "name" $from.existingSecret "keys" $from.existingSecretKeys "base" $from.url "client" $client | toJson -}}
{{- else -}}
{{- dict "name" (printf "%s-%s" $name $of) "keys" (dict "url" "url") "url" $from.url "client" $client | toJson -}}
{{- end -}}
{{- end }}

{{/* The name of the volume of a service, and of its folder. Argument: of. */}}
{{- define "plegwatch.accessName" -}}
{{- trimPrefix "agent-" .of -}}
{{- end }}

{{/*
The environment that says how a service is reached. Files and no variables, so that a Secret can be rotated. Arguments: those of
plegwatch.urlSecret.
*/}}
{{- define "plegwatch.accessEnv" -}}
{{- $secret := include "plegwatch.urlSecret" . | fromJson -}}
{{- $isRedis := hasSuffix "redis" .of -}}
{{- $prefix := ternary "PLEGWATCH_REDIS" "PLEGWATCH_DATABASE" $isRedis -}}
{{- $tls := ternary .root.Values.redis.tls .root.Values.database.tls $isRedis -}}
{{- $dir := printf "/etc/plegwatch/%s" (include "plegwatch.accessName" .) -}}
- name: {{ $prefix }}_SECRET_DIR
  value: {{ $dir }}
{{- with $secret.base }}
- name: {{ $prefix }}_URL
  value: {{ . | quote }}
{{- end }}
{{- if $tls.caSecret }}
- name: {{ $prefix }}_CA_FILE
  value: {{ $dir }}/tls/ca.crt
{{- end }}
{{- if $secret.client }}
- name: {{ $prefix }}_CERT_FILE
  value: {{ $dir }}/tls/tls.crt
- name: {{ $prefix }}_KEY_FILE
  value: {{ $dir }}/tls/tls.key
{{- end }}
{{- with $tls.mode }}
- name: {{ $prefix }}_SSLMODE
  value: {{ . }}
{{- end }}
{{- if not $isRedis }}
- name: {{ $prefix }}_POOL_MODE
  value: {{ .root.Values.database.poolMode }}
{{- end }}
{{- end }}

{{- define "plegwatch.accessMount" -}}
- name: {{ include "plegwatch.accessName" . }}
  mountPath: /etc/plegwatch/{{ include "plegwatch.accessName" . }}
  readOnly: true
{{- end }}

{{/* Arguments: those of plegwatch.urlSecret, and copy (the name of a copy of the chart's Secret, to be used instead of it). */}}
{{- define "plegwatch.accessVolume" -}}
{{- $secret := include "plegwatch.urlSecret" . | fromJson -}}
{{- $tls := ternary .root.Values.redis.tls .root.Values.database.tls (hasSuffix "redis" .of) -}}
- name: {{ include "plegwatch.accessName" . }}
  projected:
    sources:
      - secret:
          name: {{ ternary $secret.name (default $secret.name .copy) (empty $secret.url) }}
          {{- with $secret.keys }}
          items:
            {{- range $file, $key := . }}
            - {key: {{ $key | quote }}, path: {{ $file | quote }}}
            {{- end }}
          {{- end }}
      {{- with $tls.caSecret }}
      - secret:
          name: {{ . }}
          items:
            - {key: {{ $tls.caKey | quote }}, path: tls/ca.crt}
      {{- end }}
      {{- with $secret.client }}
      - secret:
          name: {{ . }}
          items:
            - {key: tls.crt, path: tls/tls.crt}
            - {key: tls.key, path: tls/tls.key}
      {{- end }}
{{- end }}

{{/* The container that migrates. Arguments: root, wait (how long for Postgres, or empty). */}}
{{- define "plegwatch.migrateContainer" -}}
- name: migrate
  {{- include "plegwatch.image" .root | nindent 2 }}
  args: [migrate]
  env:
    {{- include "plegwatch.accessEnv" (dict "root" .root "of" "database-owner") | nindent 4 }}
    {{- with .root.Values.migrate.queues }}
    - name: PLEGWATCH_QUEUES
      value: {{ . | quote }}
    {{- end }}
    {{- with .root.Values.migrate.eventRetentionDays }}
    - name: PLEGWATCH_EVENT_RETENTION_DAYS
      value: {{ . | quote }}
    {{- end }}
    {{- with .root.Values.migrate.findingRetentionDays }}
    - name: PLEGWATCH_FINDING_RETENTION_DAYS
      value: {{ . | quote }}
    {{- end }}
    {{- with .root.Values.migrate.controllerRoles }}
    - name: PLEGWATCH_CONTROLLER_ROLES
      value: {{ join "," . | quote }}
    {{- end }}
    {{- with .wait }}
    - name: PLEGWATCH_DATABASE_WAIT
      value: {{ . }}
    {{- end }}
    - name: PLEGWATCH_LOG_LEVEL
      value: {{ .root.Values.logLevel }}
  {{- with .root.Values.migrate.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "plegwatch.containerSecurity" .root | nindent 4 }}
  volumeMounts:
    {{- include "plegwatch.accessMount" (dict "of" "database-owner") | nindent 4 }}
{{- end }}

{{- /* The port of a URL. */ -}}
{{- define "plegwatch.portOf" -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+(/|$)" . | trimSuffix "/") -}}
{{- $port | default (ternary 80 443 (hasPrefix "http:" .)) -}}
{{- end }}

{{/*
The containers that set the fleet database up and then give each reader its users, as a JSON list, one after the other. Each has a name, a reader
(none: the owner) and groups.
*/}}
{{- define "plegwatch.federateRuns" -}}
{{- $runs := list (dict "name" "federate" "groups" .Values.federate.groups) -}}
{{- range $i, $reader := .Values.federate.readers -}}
{{- $runs = append $runs (dict "name" (printf "reader-%d" $i) "reader" $reader.role "groups" $reader.groups) -}}
{{- end -}}
{{- toJson $runs -}}
{{- end }}

{{/* Arguments: root, run (one of plegwatch.federateRuns). */}}
{{- define "plegwatch.federateContainer" -}}
{{- $access := dict "root" .root "of" "fleet-database" -}}
- name: {{ .run.name }}
  {{- include "plegwatch.image" .root | nindent 2 }}
  args: [federate]
  env:
    {{- include "plegwatch.accessEnv" $access | nindent 4 }}
    - name: PLEGWATCH_GROUPS_DIR
      value: /etc/plegwatch/groups
    {{- with .run.reader }}
    - name: PLEGWATCH_READER
      value: {{ . | quote }}
    {{- end }}
    - name: PLEGWATCH_LOG_LEVEL
      value: {{ .root.Values.logLevel }}
  {{- with .root.Values.federate.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "plegwatch.containerSecurity" .root | nindent 4 }}
  volumeMounts:
    {{- include "plegwatch.accessMount" $access | nindent 4 }}
    {{- range .run.groups }}
    - name: {{ $.run.name }}-{{ .name }}
      mountPath: /etc/plegwatch/groups/{{ .name }}
      readOnly: true
    {{- end }}
{{- end }}

{{/* The spec of a Job that sets the fleet database up. Arguments: root, component. */}}
{{- define "plegwatch.federateJob" -}}
{{- $runs := include "plegwatch.federateRuns" .root | fromJsonArray -}}
backoffLimit: 6
activeDeadlineSeconds: 600
template:
  metadata:
    labels:
      {{- include "plegwatch.labels" . | nindent 6 }}
  spec:
    restartPolicy: Never
    automountServiceAccountToken: false
    enableServiceLinks: false
    {{- include "plegwatch.schedulingBeside" .root | nindent 4 }}
    securityContext:
      {{- include "plegwatch.podSecurity" .root | nindent 6 }}
    {{- with initial $runs }}
    # One after the other.
    initContainers:
      {{- range . }}
      {{- include "plegwatch.federateContainer" (dict "root" $.root "run" .) | nindent 6 }}
      {{- end }}
    {{- end }}
    containers:
      {{- include "plegwatch.federateContainer" (dict "root" .root "run" (last $runs)) | nindent 6 }}
    volumes:
      {{- include "plegwatch.accessVolume" (dict "root" .root "of" "fleet-database") | nindent 6 }}
      {{- range $run := $runs }}
      {{- range $run.groups }}
      - name: {{ $run.name }}-{{ .name }}
        secret:
          secretName: {{ .existingSecret }}
          {{- with .existingSecretKeys }}
          items:
            {{- range $file, $key := . }}
            - {key: {{ $key | quote }}, path: {{ $file | quote }}}
            {{- end }}
          {{- end }}
      {{- end }}
      {{- end }}
{{- end }}
