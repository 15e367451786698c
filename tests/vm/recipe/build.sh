# shellcheck shell=bash
# "vm build": from this machine's package sources to root.img, vmlinuz and initrd. Sourced by vm.
# It lies in recipe/ because a change here, too, has to make the image again.

readonly KERNEL_PACKAGE=linux-image-amd64
# Room in the root for what a test writes there; the image is sparse, so it costs nothing.
readonly ROOT_SPARE_MIB=1024

# words_of FILE: its lines without comments and empty ones.
words_of() {
        sed -e 's/[[:space:]]*#.*//' -e '/^$/d' "$1"
}

# What the image depends on: every file of the recipe (this one too) and its mode.
recipe_hash() {
        (
                cd "$recipe"
                find . -type f -printf '%m %p\n' | LC_ALL=C sort
                find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
        ) | sha256sum | cut -c 1-16
}

# image_dir [FLAVOUR]
image_dir() {
        echo "$cache/$(recipe_hash)${1:+-$1}"
}

# package_lists [FLAVOUR]: a flavour is the plain machine and the packages of recipe/packages.FLAVOUR.
package_lists() {
        echo "$recipe/packages"
        [[ -z ${1:-} ]] || echo "$recipe/packages.$1"
}

# apt_as_root WORD...: apt-get, if we may.
apt_as_root() {
        local as_root=()
        ((EUID == 0)) || as_root=(sudo -n)
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >&2
}

may_be_root() {
        ((EUID == 0)) || sudo -n true 2>/dev/null
}

# install_missing PROGRAM=PACKAGE...
install_missing() {
        local pair missing=()
        for pair in "$@"; do
                type -P "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
        done
        ((${#missing[@]})) || return 0
        may_be_root || die "please install: apt-get install --no-install-recommends ${missing[*]}"
        say "installing ${missing[*]}"
        apt_as_root update
        apt_as_root -y install --no-install-recommends "${missing[@]}"
}

require_host() {
        [[ $(uname -m) == x86_64 ]] ||
                die "the machine is x86-64 and made of this machine's packages; this is $(uname -m)"
        [[ $(. /etc/os-release && echo "$ID") == debian ]] ||
                die "the machine is made from this machine's own package sources, which have to be Debian's"
        local tools=(qemu-system-x86_64=qemu-system-x86 mmdebstrap=mmdebstrap mke2fs=e2fsprogs cpio=cpio depmod=kmod)
        ((EUID == 0)) || tools+=(fakeroot=fakeroot newuidmap=uidmap)
        install_missing "${tools[@]}"
}

# fetch_package NAME DIR: unpacks it into DIR; nothing is installed here.
fetch_package() {
        local download=$2.deb
        mkdir -p "$download" "$2"
        (cd "$download" && apt-get -qq -o APT::Sandbox::User=root download "$1" >&2) ||
                die "cannot download $1; does 'apt-get update' work here?"
        dpkg -x "$download"/*.deb "$2"
}

# $KERNEL_PACKAGE is only a pointer to the newest versioned package.
kernel_package() {
        apt-cache depends --important "$KERNEL_PACKAGE" |
                sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1
}

# module_files TREE KVER NAME...: their files, each after those it needs. Built-in ones have none.
module_files() {
        modprobe --dirname "$1" --set-version "$2" --show-depends --all "${@:3}" |
                awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# make_initrd WORK KVER: WORK/initrd, from busybox and the early modules.
make_initrd() {
        local work=$1 tree=$1/initramfs file
        fetch_package busybox-static "$work/busybox"
        mkdir -p "$tree"/{bin,dev,modules,root}
        install -m 755 "$(find "$work/busybox" -path '*/bin/busybox' -type f | head -n 1)" "$tree/bin/busybox"
        ln -s busybox "$tree/bin/sh"
        install -m 755 "$recipe/initramfs-init" "$tree/init"

        local early
        mapfile -t early < <(words_of "$recipe/modules" | awk '$1 == "early" { print $2 }')
        while read -r file; do
                cp "$file" "$tree/modules/"
                echo "${file##*/}" >>"$tree/modules/order"
        done < <(module_files "$work/kernel" "$2" "${early[@]}")

        # The kernel opens /dev/console before init can mount devtmpfs, and does without it if it must.
        (cd "$tree" && find . | cpio --quiet --format=newc --owner=0:0 --create) >"$work/initrd"
}

# make_overlay WORK KVER: WORK/overlay.tar, what is laid over the packages: our files and the kernel's modules.
make_overlay() {
        local work=$1 tree=$1/overlay file modules
        mkdir -p "$tree/usr"
        cp -r "$recipe/overlay/." "$tree"
        mapfile -t modules < <(words_of "$recipe/modules" | awk '{ print $2 }')
        while read -r file; do
                install -D -m 644 "$file" "$tree/usr/${file#"$work/kernel/"}"
        done < <(module_files "$work/kernel" "$2" "${modules[@]}")
        cp "$work/kernel/lib/modules/$2"/modules.{builtin,builtin.modinfo,order} "$tree/usr/lib/modules/$2/"
        # depmod and kmod look below lib/; the guest has /lib as a link to /usr/lib.
        depmod --basedir "$tree/usr" "$2" 2>/dev/null
        tar --create --file "$work/overlay.tar" --directory "$tree" --owner=0 --group=0 --numeric-owner \
                --mode=u+rw,go=u-w .
}

# The package sources of this machine, as the files they are in, and how this machine reaches them.
host_sources() {
        find /etc/apt/sources.list /etc/apt/sources.list.d -type f \
                \( -name '*.list' -o -name '*.sources' \) 2>/dev/null | LC_ALL=C sort
}

host_apt_options() {
        apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until |Retries |ForceIPv)' || :
}

# make_root_tar WORK FLAVOUR: WORK/root.tar
make_root_tar() {
        local work=$1 option options=() sources lists packages
        while read -r option; do
                options+=("--aptopt=$option")
        done < <(host_apt_options)
        mapfile -t sources < <(host_sources)
        mapfile -t lists < <(package_lists "$2")
        packages=$(for list in "${lists[@]}"; do words_of "$list"; done | paste -sd ,)
        # shellcheck disable=SC2016
        mmdebstrap --quiet --variant=essential --format=tar --include="$packages" "${options[@]}" \
                --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
                --dpkgopt='path-exclude=/usr/share/locale/*' \
                --customize-hook="tar-in $work/overlay.tar /" \
                --customize-hook='chroot "$1" /usr/lib/antifreeze-vm/setup' \
                --skip=output/dev \
                "$(. /etc/os-release && echo "$VERSION_CODENAME")" - "${sources[@]}" >"$work/root.tar"
}

# make_root_image WORK: WORK/root.img. Where the packages came from is this machine's affair, so etc/apt stays out: the
# guest has no network. An ordinary user's fakeroot keeps the owners in mind for mke2fs.
make_root_image() {
        local work=$1 faked=()
        ((EUID == 0)) || faked=(fakeroot)
        mkdir "$work/root"
        # shellcheck disable=SC2016
        "${faked[@]}" bash -euc '
                tar --extract --exclude=./etc/apt --file "$1/root.tar" --directory "$1/root" \
                        --numeric-owner --same-owner --same-permissions
                mkdir -p "$1/root/dev"
                mib=$(($(du --summarize --block-size=1M "$1/root" | cut -f 1) * 5 / 4 + $2))
                truncate --size "${mib}M" "$1/root.img"
                mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 -m 0 -d "$1/root" "$1/root.img"
        ' bash "$work" "$ROOT_SPARE_MIB"
}

# build_into DIR FLAVOUR: all of it, in a folder beside, moved into place when whole.
build_into() {
        local work kernel kver
        work=$(mktemp -d "$cache/build.XXXXXX")
        # shellcheck disable=SC2064
        trap "rm -rf '$work'" EXIT

        # Old lists name kernels that are no longer there to download.
        ! may_be_root || apt_as_root update || say "apt-get update failed; going on with the lists there are"
        kernel=$(kernel_package)
        [[ -n $kernel ]] || die "no $KERNEL_PACKAGE in this machine's package lists; does 'apt-get update' work here?"
        kver=${kernel#linux-image-}
        say "kernel $kver"
        fetch_package "$kernel" "$work/kernel"
        depmod --basedir "$work/kernel" "$kver"
        make_initrd "$work" "$kver"
        make_overlay "$work" "$kver"
        say "packages, from this machine's own sources"
        make_root_tar "$work" "$2"
        say "image"
        make_root_image "$work"

        mkdir "$work/done"
        mv "$work/root.img" "$work/initrd" "$work/done/"
        cp "$work/kernel/boot/vmlinuz-$kver" "$work/done/vmlinuz"
        mv "$work/done" "$1"
}

cmd_build() {
        local dir old flavour=${1:-}
        [[ -z $flavour || -f $recipe/packages.$flavour ]] || die "no such flavour: $flavour"
        dir=$(image_dir "$flavour")
        mkdir -p "$cache"
        exec 9>"$cache/lock"
        flock 9
        require_host
        if [[ ! -d $dir ]]; then
                say "making the machine in $dir"
                (build_into "$dir" "$flavour")
                for old in "$cache"/*/; do
                        # Other flavours of the same recipe stay.
                        [[ $old == "$(image_dir)"[/-]* ]] || rm -rf "$old"
                done
        fi
        exec 9>&-
}

