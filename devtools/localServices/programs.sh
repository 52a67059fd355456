# shellcheck shell=bash
# The pinned versions of the programs, and their paths in the cache. Sourced by devtools/localServices/prepare and where.
# Folder names contain the version, so that a changed pin never finds an old program.

services_dir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
tree_dir=$(cd -- "$services_dir/../.." && pwd)

node_version=24.21.0
node_least=24.11.0
postgres_version=18.4.0-beta.17
redis_least=6.2.0
# Series and Debian suite. Debian has one version of a package per suite; prepare refuses any other series.
declare -A containerd_suites=([2.1]=forky [1.7]=trixie [1.6]=bookworm)
runc_series=1.1 runc_suite=bookworm
redis_series=7.0 redis_suite=bookworm
pgbouncer_series=1.18 pgbouncer_suite=bookworm
etcd_series=3.5 etcd_suite=forky
# The libraries of plegwatch's own image, and the architectures that it is built for.
image_libraries_series=12.2 image_suite=bookworm
image_architectures=(amd64 arm64)
cni_series=1.1 cni_suite=bookworm
buildah_series=1.28 buildah_suite=bookworm
registry_series=2.8 registry_suite=bookworm
chromium_series=150 chromium_suite=bookworm
nftables_series=1.0 nftables_suite=bookworm
promtool_series=3.5 promtool_suite=forky
operator_crds_version=0.85.0
spark_version=4.0.5 java_series=17.0 java_suite=bookworm
# The versions of Kubernetes whose API the chart is checked against: the last of each minor one that the module proxy has, with the digest of its module.
declare -A kubernetes_api=(
  [1.28.15]=h1:d91N2Znk+E8REIJZlrD6za2JtIwvEypa0DB1IoU4fJ0=
  [1.29.14]=h1:mbk5M/WaJr/AX7p3p2/7eJjrtI+I3AKu7IEjI8+Ny/U=
  [1.30.14]=h1:MrlKXh9uhLIJpyxOeXhcndzRVSvwiV9iJ8NgH8nqPsg=
  [1.31.14]=h1:UtjLfqvXLuSVDdJ4+NpQCIfFkKkLnAAVmxAEMsnkhjk=
  [1.32.13]=h1:5TGYdZ6YZqdp6h/Rp1vX/4TIoybMPdgv97LCZCtPuNQ=
  [1.33.13]=h1:bmH31xUdSzeA5vk0wZAK9MZp11mdLuzUSeKk0qN3hPQ=
  [1.34.4]=h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk=
  [1.35.4]=h1:o/8dBC/pHVpYoGV4OAIytAlNPZbdYVTXJHoYvXC4qzM=
  [1.36.3]=h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=
  [1.37.2]=h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE=
)
images_version=2
# The versions of Go programs are pinned in their go.mod.
module_version() { awk -v m="$2" '{ sub(/^require /, "") } $1 == m && $2 ~ /^v/ { print substr($2, 2); exit }' "$services_dir/$1/go.mod"; }
kubernetes_version=$(module_version kubernetes k8s.io/kubernetes)
# Kubelets of other minor versions, each a module of its own.
kubelet_minors=(1.37 1.33 1.30 1.28)
kubelet_version() { module_version "kubelets/$1" k8s.io/kubernetes; }
# containerds that no Debian suite has, likewise.
built_containerds=(2.4 2.3 2.2)
built_containerd_version() { module_version "containerd-$1" github.com/containerd/containerd/v2; }
helm_version=$(module_version helm helm.sh/helm/v4)
helm_3_version=$(module_version helm-3 helm.sh/helm/v3)
kubeconform_version=$(module_version kubeconform github.com/yannh/kubeconform)
jsonnet_version=$(module_version jsonnet github.com/google/go-jsonnet)
cosign_version=$(module_version cosign github.com/sigstore/cosign/v3)
critest_version=$(module_version critest sigs.k8s.io/cri-tools)
# These are our own source, so their folder names also contain a digest of it.
otelcol_version=$(module_version otelcol go.opentelemetry.io/collector/otelcol)-$(cat "$services_dir"/otelcol/* | sha256sum | cut -c 1-8)
criclient_version=$(module_version criclient k8s.io/cri-client)-$(cat "$services_dir"/criclient/* | sha256sum | cut -c 1-8)

if [ -n "${PLEGWATCH_CACHE:-}" ]; then
  cache=$PLEGWATCH_CACHE
elif [ "$(id -u)" = 0 ]; then
  # As root, Postgres runs as nobody, so the cache must be readable for everybody.
  cache=/var/cache/plegwatch
else
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/plegwatch
fi

node_dir=$cache/node-$node_version
postgres_dir=$cache/postgres-$postgres_version
redis_dir=$cache/redis-$redis_series-$redis_suite
pgbouncer_dir=$cache/pgbouncer-$pgbouncer_series-$pgbouncer_suite
runc_dir=$cache/runc-$runc_series-$runc_suite
etcd_dir=$cache/etcd-$etcd_series-$etcd_suite
cni_dir=$cache/cni-$cni_series-$cni_suite
buildah_dir=$cache/buildah-$buildah_series-$buildah_suite
registry_dir=$cache/registry-$registry_series-$registry_suite
chromium_dir=$cache/chromium-$chromium_series-$chromium_suite
nftables_dir=$cache/nftables-$nftables_series-$nftables_suite
promtool_dir=$cache/promtool-$promtool_series-$promtool_suite
operator_crds_dir=$cache/operator-crds-$operator_crds_version
images_dir=$cache/images-$images_version
spark_dir=$cache/spark-$spark_version-java-$java_series-$java_suite
kubernetes_dir=$cache/kubernetes-$kubernetes_version
helm_dir=$cache/helm-$helm_version
helm_3_dir=$cache/helm-$helm_3_version
kubeconform_dir=$cache/kubeconform-$kubeconform_version
kubernetes_api_dir=$cache/kubernetes-api-$(printf '%s\n' "${kubernetes_api[@]}" | sort | sha256sum | cut -c 1-8)
jsonnet_dir=$cache/jsonnet-$jsonnet_version
cosign_dir=$cache/cosign-$cosign_version
otelcol_dir=$cache/otelcol-$otelcol_version
critest_dir=$cache/critest-$critest_version
criclient_dir=$cache/criclient-$criclient_version
image_base_dir() { printf '%s\n' "$cache/image-base-$node_version-$image_suite-$1"; }
kubelet_dir() { printf '%s\n' "$cache/kubelet-$(kubelet_version "$1")"; }
containerd_dir() { printf '%s\n' "$cache/containerd-$1-${containerd_suites[$1]:-$(built_containerd_version "$1")}"; }

# at_least A B: whether version A is B or later.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# The machine's Node, if it is recent enough.
own_node() {
  local path
  path=$(command -v node) || return 1
  at_least "$("$path" -p process.versions.node 2>/dev/null || echo 0)" "$node_least" && printf '%s\n' "$path"
}

own_redis() {
  local path version
  path=$(command -v redis-server) || return 1
  version=$("$path" --version 2>/dev/null | sed -n 's/.* v=\([0-9.]*\).*/\1/p')
  at_least "${version:-0}" "$redis_least" && printf '%s\n' "$path"
}

# kubebuilder's variable: a folder that has kube-apiserver, etcd and kubectl already.
asset() { [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ] && printf '%s\n' "$KUBEBUILDER_ASSETS/$1"; }

program_names=(
  node postgres initdb pgbouncer redis-server
  {containerd,ctr,containerd-shim}-{2.4,2.3,2.2,2.1,1.7,1.6}
  runc etcd image-pause image-busybox image-critest image-base-amd64 image-base-arm64 image-node kube-apiserver kubectl kubelet kubelet-{1.37,1.33,1.30,1.28} kube-controller-manager kube-scheduler kube-proxy coredns helm helm-3 kubeconform kubernetes-api cosign otelcol promtool jsonnet operator-crds criclient
  cni-ptp nft buildah registry skopeo chromium critest spark
)

# program_path NAME: where the program is, or will be once it is prepared. Returns 2 for an unknown name.
program_path() {
  case $1 in
    node) own_node || echo "$node_dir/bin/node" ;;
    postgres | initdb) echo "$postgres_dir/native/bin/$1" ;;
    pgbouncer) echo "$pgbouncer_dir/bin/pgbouncer" ;;
    redis-server) own_redis || echo "$redis_dir/bin/redis-server" ;;
    containerd-[12].[0-9]) echo "$(containerd_dir "${1##*-}")/usr/bin/containerd" ;;
    ctr-[12].[0-9]) echo "$(containerd_dir "${1##*-}")/usr/bin/ctr" ;;
    containerd-shim-[12].[0-9])
      echo "$(containerd_dir "${1##*-}")/usr/bin/containerd-shim-runc-v2" ;;
    runc) echo "$runc_dir/usr/sbin/runc" ;;
    etcd) asset etcd || echo "$etcd_dir/usr/bin/etcd" ;;
    image-base-amd64 | image-base-arm64) image_base_dir "${1##*-}" ;;
    # The image's own Node, for this machine.
    image-node) [ "$(uname -m)" = aarch64 ] && echo "$(image_base_dir arm64)/node/bin/node" || echo "$(image_base_dir amd64)/node/bin/node" ;;
    image-pause | image-busybox | image-critest) echo "$images_dir/${1#image-}.tar" ;;
    kube-apiserver | kubectl) asset "$1" || echo "$kubernetes_dir/$1" ;;
    kubelet | kube-controller-manager | kube-scheduler | kube-proxy) echo "$kubernetes_dir/$1" ;;
    kubelet-1.[0-9][0-9]) echo "$(kubelet_dir "${1##*-}")/kubelet" ;;
    coredns) echo "$kubernetes_dir/coredns-$(module_version kubernetes github.com/coredns/coredns)" ;;
    buildah) echo "$buildah_dir/bin/buildah" ;;
    registry) echo "$registry_dir/usr/bin/docker-registry" ;;
    skopeo) echo "$registry_dir/bin/skopeo" ;;
    chromium) echo "$chromium_dir/bin/chromium-headless-shell" ;;
    cni-ptp) echo "$cni_dir/usr/lib/cni/ptp" ;;
    nft) echo "$nftables_dir/bin/nft" ;;
    helm) echo "$helm_dir/helm" ;;
    helm-3) echo "$helm_3_dir/helm" ;;
    kubeconform) echo "$kubeconform_dir/kubeconform" ;;
    kubernetes-api) echo "$kubernetes_api_dir" ;;
    cosign) echo "$cosign_dir/cosign" ;;
    otelcol) echo "$otelcol_dir/otelcol" ;;
    promtool) echo "$promtool_dir/usr/bin/promtool" ;;
    jsonnet) echo "$jsonnet_dir/jsonnet" ;;
    operator-crds) echo "$operator_crds_dir" ;;
    critest) echo "$critest_dir/critest" ;;
    criclient) echo "$criclient_dir/criclient" ;;
    spark) echo "$spark_dir/bin/spark" ;;
    *) return 2 ;;
  esac
}

# program_target NAME: the argument of devtools/localServices/prepare that brings this program.
program_target() {
  case $1 in
    node) echo node ;;
    postgres | initdb) echo postgres ;;
    redis-server) echo redis ;;
    containerd*-2.[2-4] | ctr-2.[2-4]) echo "containerd-${1##*-}" ;;
    containerd* | ctr*) echo containerd ;;
    image-base-* | image-node) echo image-base ;;
    cni-*) echo cni ;;
    nft) echo nftables ;;
    skopeo) echo registry ;;
    image-*) echo images ;;
    kube-apiserver | kubectl | kubelet) echo kubernetes ;;
    kube-* | coredns) echo kubernetes-more ;;
    *) echo "$1" ;;
  esac
}
