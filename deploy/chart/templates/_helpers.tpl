{{/* The same objects as `egs install` makes; tests/deploy compares them one by one. */}}

{{- define "egs.picked" -}}
app.kubernetes.io/name: egs
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "egs.labels" -}}
{{ include "egs.picked" . }}
app.kubernetes.io/part-of: egs
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "egs.metadata" -}}
name: {{ .root.Release.Name }}-{{ .part }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "egs.labels" . | nindent 2 }}
{{- end }}

{{- define "egs.clusterMetadata" -}}
name: {{ .root.Release.Name }}-{{ .part }}
labels:
  {{- include "egs.labels" . | nindent 2 }}
{{- end }}

{{/* Refuse what cannot work, in the words of `egs install`. */}}
{{- define "egs.check" -}}
{{- $v := .Values }}
{{- if ne .Release.Namespace "egs-system" }}{{ fail "install into the namespace egs-system, where the controller keeps its own objects: helm … -n egs-system" }}{{ end }}
{{- if not $v.repositories }}{{ fail "values: repositories is empty; name the repository of manifests" }}{{ end }}
{{- $part := "" }}
{{- if eq $v.role "cluster" }}{{ $part = "role cluster" }}{{ end }}
{{- if $v.agents.enabled }}{{ $part = "agents" }}{{ end }}
{{- if $v.door.enabled }}{{ $part = "door" }}{{ end }}
{{- if and $part (not $v.cluster) }}{{ fail (printf "values: cluster is empty; %s needs the name of this cluster's document" $part) }}{{ end }}
{{- $level := $v.trust.level }}
{{- if not $level }}{{ fail "values: trust.level is empty; write signature, forge or both, or none: then everyone who can push counts as an admin" }}{{ end }}
{{- if ne $level "none" }}
{{- if not $v.trust.signers }}{{ fail (printf "values: trust.signers is empty; level %s needs allowed_signers" $level) }}{{ end }}
{{- $speaking := list (eq $v.role "controller" | ternary "controller" "apply") }}
{{- if $v.door.enabled }}{{ $speaking = append $speaking "door" }}{{ end }}
{{- if $v.agents.enabled }}{{ $speaking = append $speaking "agents" }}{{ end }}
{{- if $v.portal.enabled }}{{ $speaking = append $speaking "portal" }}{{ end }}
{{- range $speaking }}
{{- if not (index $v . "signingKey") }}{{ fail (printf "values: %s.signingKey is empty; level %s needs the key that %s signs with" . $level .) }}{{ end }}
{{- end }}
{{- end }}
{{- $one := $part }}
{{- if and (not $one) $v.portal.enabled }}{{ $one = "portal" }}{{ end }}
{{- if and $one (gt (len $v.repositories) 1) }}{{ fail (printf "values: repositories has more than one; %s serves one" $one) }}{{ end }}
{{- if and $v.portal.enabled (gt (int $v.portal.replicas) 1) (not $v.portal.sessionSecret) }}{{ fail "values: portal.sessionSecret is empty; several replicas need one secret to know each other's sessions" }}{{ end }}
{{- end }}

{{/* The one repository, without its name. */}}
{{- define "egs.repository" -}}
{{- $given := first .Values.repositories | default "" -}}
{{- regexReplaceAll "^[^=/:]*=(.+)$" $given "${1}" -}}
{{- end }}

{{- define "egs.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* Who a part is; dict root part calls. */}}
{{- define "egs.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "egs.metadata" . | nindent 2 }}
automountServiceAccountToken: {{ .calls }}
{{- end }}

{{/* Roles and bindings; dict root part cluster system, the last two lists of rules. */}}
{{- define "egs.granted" -}}
{{- if .cluster }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  {{- include "egs.clusterMetadata" . | nindent 2 }}
rules:
  {{- toYaml .cluster | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  {{- include "egs.clusterMetadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .root.Release.Name }}-{{ .part }}
subjects:
  - kind: ServiceAccount
    name: {{ .root.Release.Name }}-{{ .part }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
{{- if .system }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "egs.metadata" . | nindent 2 }}
rules:
  {{- toYaml .system | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "egs.metadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .root.Release.Name }}-{{ .part }}
subjects:
  - kind: ServiceAccount
    name: {{ .root.Release.Name }}-{{ .part }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* Rules to say how many nodes elastic pools have; for no other objects than those that are named. */}}
{{- define "egs.scaling" -}}
{{- $machines := false }}
{{- $claims := false }}
{{- range .Values.scaleTargets }}
{{- $group := ternary (splitList "/" .apiVersion | first) "" (contains "/" .apiVersion) }}
{{- if eq $group "cluster.x-k8s.io" }}{{ $machines = true }}{{ end }}
{{- if eq $group "karpenter.sh" }}{{ $claims = true }}{{ end }}
{{- $name := .name }}
{{- range list .resource (printf "%s/scale" .resource) }}
- apiGroups: [{{ $group | quote }}]
  resources: [{{ . }}]
  verbs: [get, patch]
  resourceNames: [{{ $name | quote }}]
{{- end }}
{{- end }}
{{- if $machines }}
- apiGroups: [cluster.x-k8s.io]
  resources: [machines]
  verbs: [get, patch]
{{- end }}
{{- if $claims }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [delete]
- apiGroups: [karpenter.sh]
  resources: [nodeclaims]
  verbs: [delete]
{{- end }}
{{- end }}

{{/* Rules by which one of several is active; dict root part. */}}
{{- define "egs.election" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, update]
  resourceNames: [{{ .root.Release.Name }}-{{ .part }}]
{{- end }}

{{/* In comes what a part serves; out go names, Git and API servers. dict root part port (0: nothing comes in) from (peers; absent: all). */}}
{{- define "egs.walls" -}}
{{- if .root.Values.networkPolicies.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "egs.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "egs.picked" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- if .port }}
  ingress:
    - ports:
        - {protocol: TCP, port: {{ .port }}}
      {{- with .from }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- end }}
  egress:
    - ports:
        - {protocol: UDP, port: 53}
        - {protocol: TCP, port: 53}
    - ports:
        {{- range .root.Values.networkPolicies.egressPorts }}
        - {protocol: TCP, port: {{ . }}}
        {{- else }} []
        {{- end }}
{{- end }}
{{- end }}

{{/* One of several stays when nodes are drained; dict root part replicas. */}}
{{- define "egs.budget" -}}
{{- if gt (int .replicas) 1 }}
---
apiVersion: {{ if .root.Capabilities.APIVersions.Has "policy/v1" }}policy/v1{{ else }}policy/v1beta1{{ end }}
kind: PodDisruptionBudget
metadata:
  {{- include "egs.metadata" . | nindent 2 }}
spec:
  minAvailable: 1
  selector:
    matchLabels:
      {{- include "egs.picked" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* Where metrics, probes and webhooks are served; dict root part. */}}
{{- define "egs.service" }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "egs.metadata" . | nindent 2 }}
spec:
  selector:
    {{- include "egs.picked" . | nindent 4 }}
  ports:
    - {name: http, port: 8080, targetPort: http, protocol: TCP}
{{- end }}

{{- define "egs.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: http}
  initialDelaySeconds: 10
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* A Deployment; dict root part replicas pods command args mounts ports probes, and what "egs.variables" reads. */}}
{{- define "egs.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "egs.metadata" . | nindent 2 }}
spec:
  replicas: {{ .replicas }}
  selector:
    matchLabels:
      {{- include "egs.picked" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "egs.labels" . | nindent 8 }}
    spec:
      {{- include "egs.pod" . | nindent 6 }}
      {{- with .pods.tolerations }}
      tolerations:
        {{- include "egs.tolerations" . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "egs.picked" . | nindent 14 }}
{{- end }}

{{- define "egs.tolerations" -}}
{{- range . }}
- operator: {{ .operator | default "Equal" }}
  {{- with .key }}
  key: {{ . }}
  {{- end }}
  {{- with .value }}
  value: {{ . | quote }}
  {{- end }}
  {{- with .effect }}
  effect: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Variables by which a part finds its key (signs), the keys of others (trusts), the forge (asks), and its own (variables). */}}
{{- define "egs.variables" -}}
{{- $v := .root.Values }}
{{- $found := dict }}
{{- range $name, $value := .variables }}{{ $_ := set $found $name $value }}{{ end }}
{{- if .signs }}{{ $_ := set $found "EGS_KEY" "/etc/egs/signing/ssh-privatekey" }}{{ end }}
{{- if .trusts }}
{{- $_ := set $found "EGS_VERIFY" $v.trust.level }}
{{- if $v.trust.signers }}{{ $_ := set $found "EGS_TRUST" "/etc/egs/trust" }}{{ end }}
{{- end }}
{{- if .asks }}
{{- with $v.forge.kind }}{{ $_ := set $found "EGS_FORGE" . }}{{ end }}
{{- with $v.forge.api }}{{ $_ := set $found "EGS_FORGE_API" . }}{{ end }}
{{- with $v.forge.repository }}{{ $_ := set $found "EGS_FORGE_REPOSITORY" . }}{{ end }}
{{- if $v.forge.secret }}{{ $_ := set $found "EGS_FORGE_TOKEN_FILE" "/etc/egs/forge/token" }}{{ end }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{/* What is mounted below /etc/egs: Secrets, the trust folder, and other sources of volumes (folders). */}}
{{- define "egs.folders" -}}
{{- $v := .root.Values }}
{{- $secrets := dict }}
{{- with $v.git.secret }}{{ $_ := set $secrets "git" . }}{{ end }}
{{- with .signs }}{{ $_ := set $secrets "signing" . }}{{ end }}
{{- if .asks }}{{ with $v.forge.secret }}{{ $_ := set $secrets "forge" . }}{{ end }}{{ end }}
{{- range $name, $secret := .mounts }}{{ $_ := set $secrets $name $secret }}{{ end }}
{{- $found := dict }}
{{- range $name, $secret := $secrets }}
{{- /* 0400; with the pod's group it may be read by that group alone */}}
{{- $_ := set $found $name (dict "secret" (dict "secretName" $secret "defaultMode" 256)) }}
{{- end }}
{{- range $name, $source := .folders }}{{ $_ := set $found $name $source }}{{ end }}
{{- if and .trusts $v.trust.signers }}
{{- $items := list (dict "key" "allowed_signers" "path" "allowed_signers") }}
{{- range $v.trust.openPgp }}{{ $items = append $items (dict "key" . "path" (printf "gpg/%s" .)) }}{{ end }}
{{- $wanted := dict "name" $v.trust.signers "items" $items }}
{{- $more := dict "name" $v.trust.signers "optional" true "items" (list (dict "key" "revoked_keys" "path" "revoked_keys")) }}
{{- $_ := set $found "trust" (dict "projected" (dict "defaultMode" 292 "sources" (list (dict "configMap" $wanted) (dict "configMap" $more)))) }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{/* A pod's spec but for its tolerations. */}}
{{- define "egs.pod" -}}
{{- $values := .root.Values }}
{{- $folders := include "egs.folders" . | fromYaml }}
serviceAccountName: {{ .root.Release.Name }}-{{ .part }}
automountServiceAccountToken: {{ or (not (has .part (list "agents" "portal"))) (and (eq .part "portal") $values.portal.asksAgents) }}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .pods.priorityClass }}
priorityClassName: {{ . }}
{{- end }}
{{- with .pods.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $user := ternary 0 10001 (default false .ofKubelet) }}
securityContext:
  runAsNonRoot: {{ not .ofKubelet }}
  runAsUser: {{ $user }}
  runAsGroup: {{ $user }}
  {{- if not .ofKubelet }}
  fsGroup: 10001
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: {{ .part }}
    image: {{ include "egs.image" .root }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    command: [{{ .command }}]
    args:
      {{- toYaml .args | nindent 6 }}
    env:
      {{- $env := dict "PYTHONSAFEPATH" "1" "EGS_STATE" "/var/lib/egs" }}
      {{- if $values.git.secret }}{{ $_ := set $env "EGS_GIT_CREDENTIALS" "/etc/egs/git" }}{{ end }}
      {{- with $values.project }}{{ $_ := set $env "EGS_PROJECT" . }}{{ end }}
      {{- range $name, $value := include "egs.variables" . | fromYaml }}{{ $_ := set $env $name $value }}{{ end }}
      {{- range $name, $value := $values.env }}{{ $_ := set $env $name $value }}{{ end }}
      {{- range $name, $value := $env }}
      - name: {{ $name }}
        value: {{ $value | quote }}
      {{- end }}
      {{- with .env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    {{- include "egs.resources" .pods.resources | nindent 4 }}
    volumeMounts:
      - name: state
        mountPath: /var/lib/egs
      - name: tmp
        mountPath: /tmp
      {{- range $name, $_ := $folders }}
      - name: {{ $name }}
        mountPath: /etc/egs/{{ $name }}
        readOnly: true
      {{- end }}
      {{- if .ofKubelet }}
      - name: kubelet
        mountPath: /var/lib/kubelet/pod-resources
        readOnly: true
      {{- end }}
    {{- with .ports }}
    ports:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .probes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
volumes:
  - name: state
    emptyDir: {}
  - name: tmp
    emptyDir: {}
  {{- range $name, $source := $folders }}
  - name: {{ $name }}
    {{- toYaml $source | nindent 4 }}
  {{- end }}
  {{- if .ofKubelet }}
  - name: kubelet
    hostPath:
      path: /var/lib/kubelet/pod-resources
  {{- end }}
{{- end }}

{{- define "egs.resources" -}}
{{- $found := dict }}
{{- range $kind := list "requests" "limits" }}
{{- $named := dict }}
{{- range $name, $value := index $ $kind }}{{ if $value }}{{ $_ := set $named $name $value }}{{ end }}{{ end }}
{{- if $named }}{{ $_ := set $found $kind $named }}{{ end }}
{{- end }}
resources:
  {{- toYaml $found | nindent 2 }}
{{- end }}
