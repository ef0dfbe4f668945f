{{/* The release's name, with the chart's where it does not hold it; short enough for a process's name behind it. */}}
{{- define "posthaste.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "posthaste.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "posthaste.labels" -}}
{{ include "posthaste.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What no schema can say of the values together. */}}
{{- define "posthaste.check" -}}
{{- if not .Values.existingSecret -}}
{{- fail "existingSecret is required: the name of a Secret with the keys DATABASE_URL, POSTHASTE_OPERATOR_KEY and POSTHASTE_ENCRYPTION_KEY" -}}
{{- end -}}
{{- include "posthaste.checkSettings" .Values.settings -}}
{{- $roles := list -}}
{{- $names := list -}}
{{- range .Values.processes -}}
{{- if has .name $names -}}{{- fail (printf "processes: two are called %s" .name) -}}{{- end -}}
{{- if and .autoscaling (lt (int .autoscaling.replicasMax) (int .replicas)) -}}
{{- fail (printf "processes: replicasMax of %s is less than its replicas" .name) -}}
{{- end -}}
{{- include "posthaste.checkSettings" .settings -}}
{{- $names = append $names .name -}}
{{- $roles = concat $roles .roles -}}
{{- end -}}
{{- range list "api" "worker" "projector" -}}
{{- if not (has . $roles) -}}{{- fail (printf "processes: none has the role %s" .) -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "posthaste.checkSettings" -}}
{{- range $name, $value := . -}}
{{- if has $name (list "PORT" "POSTHASTE_ROLES" "POSTHASTE_METRICS_PORT") -}}
{{- fail (printf "settings: %s has a value of its own in values.yaml" $name) -}}
{{- end -}}
{{- if regexMatch "(_KEYS?|^DATABASE_URL|^EVENTSTORE_URL|^AMQP_URL)$" $name -}}
{{- fail (printf "settings: %s belongs into the Secret" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A number as it was written: Helm reads 3600000 as a float, and prints 3.6e+06. */}}
{{- define "posthaste.text" -}}
{{- if kindIs "string" . -}}{{- . -}}{{- else -}}{{- toJson . -}}{{- end -}}
{{- end -}}
