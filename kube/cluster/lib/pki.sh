# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Certificates and kubeconfigs. The authority's key stays in the state folder; a machine gets its own files only.

readonly pki=$state/pki

# authority makes the cluster's certificate authority and the key that signs service account tokens.
authority() {
	[ ! -e "$pki/sa.pub" ] || return 0
	mkdir -p "$pki"
	chmod 700 "$pki"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj /CN=dray-kube \
		-keyout "$pki/ca.key" -out "$pki/ca.crt" 2>/dev/null
	openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
	openssl rsa -in "$pki/sa.key" -pubout -out "$pki/sa.pub" 2>/dev/null
}

# certificate makes NAME.key and NAME.crt: certificate NAME SUBJECT [SUBJECT-ALT-NAMES]
certificate() {
	local name=$1 subject=$2 names=${3:-}
	[ ! -e "$pki/$name.crt" ] || return 0
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$subject" -keyout "$pki/$name.key" -out "$pki/$name.csr" 2>/dev/null
	openssl x509 -req -in "$pki/$name.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 365 -out "$pki/$name.crt" \
		-extfile <(
			echo 'extendedKeyUsage = serverAuth, clientAuth'
			[ -z "$names" ] || echo "subjectAltName = $names"
		) 2>/dev/null
	rm "$pki/$name.csr"
}

# kubeconfig prints a file for the user NAME that needs no other.
kubeconfig() {
	local name=$1
	cat <<-END
		apiVersion: v1
		kind: Config
		current-context: dray-kube
		contexts: [{name: dray-kube, context: {cluster: dray-kube, user: $name}}]
		clusters:
		- name: dray-kube
		  cluster:
		    server: https://$api_address:443
		    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
		users:
		- name: $name
		  user:
		    client-certificate-data: $(base64 -w0 "$pki/$name.crt")
		    client-key-data: $(base64 -w0 "$pki/$name.key")
	END
}

# control_plane_files writes what the control plane's daemons read into a folder.
control_plane_files() {
	local into=$1 name
	certificate apiserver /CN=kube-apiserver "IP:$api_address,IP:$control_address,IP:127.0.0.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
	certificate admin /O=system:masters/CN=admin
	certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
	certificate controller-manager /CN=system:kube-controller-manager
	certificate scheduler /CN=system:kube-scheduler
	cp "$pki"/{ca.crt,sa.key,sa.pub,apiserver.crt,apiserver.key,kubelet-client.crt,kubelet-client.key} "$into"
	for name in admin controller-manager scheduler; do
		kubeconfig "$name" >"$into/$name.conf"
	done
	kubeconfig admin >"$state/admin.conf"
}

# node_files writes what a node's kubelet reads into a folder.
node_files() {
	local name=$1 into=$2
	certificate "$name" "/O=system:nodes/CN=system:node:$name" "IP:$(node_address "$name"),DNS:$name"
	cp "$pki/ca.crt" "$into/ca.crt"
	cp "$pki/$name.crt" "$into/kubelet.crt"
	cp "$pki/$name.key" "$into/kubelet.key"
	kubeconfig "$name" >"$into/kubelet.conf"
}
