{{/*
SPDX-License-Identifier: Apache-2.0

The objects of the chart are those of kube/deploy/base, kube/deploy/switch and kube/deploy/monitoring. Only what values change is decided here.
*/}}

{{/*
drayage.documents writes the documents of a file, in the release's namespace. Its argument is a list of the root context,
the file's name, and the template that changes each object.
*/}}
{{- define "drayage.documents" -}}
{{- $root := index . 0 -}}
{{- $change := index . 2 -}}
{{- $text := $root.Files.Get (index . 1) | replace "dray-system" $root.Release.Namespace -}}
{{- range $document := regexSplit "(?m)^---$" $text -1 }}
{{- $object := fromYaml $document }}
{{- with $object.Error }}{{ fail . }}{{ end }}
{{- include $change (list $root $object) }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}

{{/* drayage.component changes an object of base. */}}
{{- define "drayage.component" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- if and $root.Values.cni.enabled (eq $object.kind "DaemonSet") (eq $object.metadata.name "dray-node") -}}
{{- include "drayage.cni" (list $root $object) -}}
{{- end -}}
{{- if has $object.kind (list "DaemonSet" "Deployment") -}}
{{- include "drayage.workload" (list $root $object (get $root.Values.workloads $object.metadata.name | default dict)) -}}
{{- end -}}
{{- end }}

{{/* drayage.cni has dray-node report pods by CNI instead of NRI, as kube/deploy/cni does. */}}
{{- define "drayage.cni" -}}
{{- $directory := (index . 0).Values.cni.directory -}}
{{- $pod := (index . 1).spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $container "args" (list (printf "--cni=%s" $directory)) -}}
{{- $mounts := list (dict "name" "plugin" "mountPath" $directory) -}}
{{- range $container.volumeMounts -}}{{- if ne .name "nri" -}}{{- $mounts = append $mounts . -}}{{- end -}}{{- end -}}
{{- $_ := set $container "volumeMounts" $mounts -}}
{{- $volumes := list (dict "name" "plugin" "hostPath" (dict "path" $directory "type" "DirectoryOrCreate")) -}}
{{- range $pod.volumes -}}{{- if ne .name "nri" -}}{{- $volumes = append $volumes . -}}{{- end -}}{{- end -}}
{{- $_ := set $pod "volumes" $volumes -}}
{{- end }}

{{/* drayage.workload changes a DaemonSet or a Deployment. */}}
{{- define "drayage.workload" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- $values := index . 2 -}}
{{- $pod := $object.spec.template.spec -}}
{{- if hasKey $values "replicas" -}}
{{- if ne $object.kind "Deployment" -}}{{- fail (printf "workloads.%s.replicas: it is a %s" $object.metadata.name $object.kind) -}}{{- end -}}
{{- $_ := set $object.spec "replicas" $values.replicas -}}
{{- end -}}
{{- range $field := list "nodeSelector" "tolerations" -}}
{{- if hasKey $values $field -}}{{- $_ := set $pod $field (get $values $field) -}}{{- end -}}
{{- end -}}
{{- with $root.Values.imagePullSecrets -}}{{- $_ := set $pod "imagePullSecrets" . -}}{{- end -}}
{{- $known := list -}}
{{- range $container := concat ($pod.initContainers | default list) $pod.containers -}}
{{- $known = append $known $container.name -}}
{{- $_ := set $container "image" (include "drayage.image" (list $root $container.image)) -}}
{{- $_ := set $container "imagePullPolicy" $root.Values.image.pullPolicy -}}
{{- with get ($values.resources | default dict) $container.name -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- end -}}
{{- range $name, $_ := $values.resources -}}
{{- if not (has $name $known) -}}{{- fail (printf "workloads.%s.resources.%s: the containers are %s" $object.metadata.name $name (join ", " $known)) -}}{{- end -}}
{{- end -}}
{{- end }}

{{/* drayage.image is the image to run for one of base, dray.local/NAME:VERSION. */}}
{{- define "drayage.image" -}}
{{- $root := index . 0 -}}
{{- $name := regexReplaceAll "^dray\\.local/([^:]+):.*$" (index . 1) "${1}" -}}
{{- get $root.Values.image.references $name | default (printf "%s/%s:%s" $root.Values.image.registry $name ($root.Values.image.tag | default $root.Chart.AppVersion)) -}}
{{- end }}

{{/* drayage.monitor changes an object of monitoring. */}}
{{- define "drayage.monitor" -}}
{{- $root := index . 0 -}}
{{- $metadata := (index . 1).metadata -}}
{{- $_ := set $metadata "labels" (merge (dict) $root.Values.monitoring.labels $metadata.labels) -}}
{{- end }}
