# shellcheck shell=bash
# "vm run": one boot, one command. Sourced by vm.

# bytes_of SIZE
bytes_of() {
        [[ $1 =~ ^[0-9]+[KMG]?$ ]] || die "not a size: $1"
        numfmt --from=iec "$1"
}

# The options of this run; sizes are in bytes once they are parsed.
mem=1G smp=2 flavour='' swap='' disk='' slow='' zram='' share='' out=''
disk_at='' pidfile='' user='' timeout_s=300 append='' console='' times='' job=''
command=()

parse_run() {
        while (($#)); do
                case $1 in
                --mem | --smp | --flavour | --swap | --disk | --disk-at | --slow | --zram | --share | --out | --timeout | --append | --pidfile)
                        (($# >= 2)) || die "$1 needs a value"
                        case $1 in
                        --mem) mem=$2 ;;
                        --smp) smp=$2 ;;
                        --flavour) flavour=$2 ;;
                        --swap) swap=$2 ;;
                        --disk) disk=$2 ;;
                        --disk-at) disk_at=$2 ;;
                        --pidfile) pidfile=$2 ;;
                        --slow) slow=$2 ;;
                        --zram) zram=$2 ;;
                        --share) share=$2 ;;
                        --out) out=$2 ;;
                        --timeout) timeout_s=$2 ;;
                        --append) append=$2 ;;
                        esac
                        shift 2
                        ;;
                --user) user=user && shift ;;
                --console) console=yes && shift ;;
                --times) times=yes && shift ;;
                --) shift && break ;;
                *) die "unknown option $1 (vm help)" ;;
                esac
        done
        (($#)) || die "no command given (vm help)"
        command=("$@")
        mem=$(bytes_of "$mem")
        [[ -z $swap ]] || swap=$(bytes_of "$swap")
        [[ -z $disk ]] || disk=$(bytes_of "$disk")
        [[ -z $disk || -z $disk_at ]] || die "there is one /disk: --disk or --disk-at"
        [[ -z $disk_at || -S $disk_at ]] || die "no such socket: $disk_at"
        [[ -z $slow || $slow =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]] || die "not BYTES:OPERATIONS a second: $slow"
        [[ -z $zram ]] || zram=$(bytes_of "$zram")
        [[ $smp =~ ^[1-9][0-9]*$ ]] || die "not a number of processors: $smp"
        [[ $timeout_s =~ ^[1-9][0-9]*$ ]] || die "not a number of seconds: $timeout_s"
        [[ -z $share || -d $share ]] || die "no such folder: $share"
        [[ -z $out || -d $out ]] || die "no such folder: $out"
}

# The job folder is how host and guest talk: settings and argv go in, started and status come out.
make_job() {
        job=$(mktemp -d "${TMPDIR:-/tmp}/antifreeze-vm.XXXXXX")
        mkdir "$job/9p"
        printf '%s\0' "${command[@]}" >"$job/9p/argv"
        {
                echo "settings_user=$user"
                echo "settings_share=${share:+yes}"
                echo "settings_out=${out:+yes}"
                echo "settings_zram=$zram"
        } >"$job/9p/settings"
        mkfifo "$job/stdout" "$job/stderr"
        [[ -z $swap ]] || truncate --size "$swap" "$job/swap"
        if [[ -n $disk ]]; then
                truncate --size "$disk" "$job/disk"
                mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 -m 0 "$job/disk"
        fi
}

# folder_words TAG DIR [OPTION]: adds a 9p folder to the array "qemu". QEMU wants commas in values doubled.
folder_words() {
        qemu+=(-virtfs "local,mount_tag=$1,path=${2//,/,,},security_model=none,multidevs=remap${3:+,$3}")
}

# disk_words FILE SERIAL OPTION
disk_words() {
        qemu+=(-drive "if=none,id=$2,format=raw,file=${1//,/,,},$3" -device "virtio-blk-pci,drive=$2,serial=$2")
}

# port_words NAME: a virtio port of that name that ends in the job folder's fifo of that name.
port_words() {
        qemu+=(-chardev "file,id=$1,path=$job/$1" -device "virtserialport,chardev=$1,name=$1")
}

# kernel_words: psi=1 because some kernels are built with PSI off by default; the rest is for speed.
kernel_words() {
        echo "console=ttyS0 quiet psi=1 panic=-1 mitigations=off random.trust_cpu=on systemd.show_status=no $append"
}

# slow_words: the options of a disk that shares the speed of --slow with its like.
slow_words() {
        [[ -z $slow ]] || echo ",throttling.group=slow,throttling.bps-total=${slow%:*},throttling.iops-total=${slow#*:}"
}

# qemu_words DIR: fills the array "qemu".
qemu_words() {
        local dir=$1 accel=${AFZ_VM_ACCEL:-tcg}
        [[ $accel != tcg ]] || accel=tcg,thread=multi
        qemu=(qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot)
        # "max" has 5-level page tables, which make every emulated page walk longer, and promises fast string
        # instructions, so that the kernel clears and copies pages by the byte: emulated, half as fast as by the word.
        qemu+=(-machine "pc,usb=off,vmport=off" -accel "$accel" -cpu "max,la57=off,erms=off,fsrm=off")
        qemu+=(-m "$((mem >> 20))M" -smp "$smp")
        qemu+=(-kernel "$dir/vmlinuz" -initrd "$dir/initrd" -append "$(kernel_words)")
        qemu+=(-chardev "file,id=console,path=$job/console" -serial chardev:console)
        disk_words "$dir/root.img" root snapshot=on
        [[ -z $swap ]] || disk_words "$job/swap" swap "cache=unsafe$(slow_words)"
        [[ -z $disk ]] || disk_words "$job/disk" disk "cache=unsafe$(slow_words)"
        # The server's cache is the disk's: QEMU adds none of its own, and the guest sees that there is one to flush.
        [[ -z $disk_at ]] || disk_words "nbd+unix:///?socket=$disk_at" disk cache=writeback
        [[ -z $pidfile ]] || qemu+=(-pidfile "$pidfile")
        qemu+=(-device virtio-serial-pci)
        port_words stdout
        port_words stderr
        folder_words job "$job/9p"
        [[ -z $share ]] || folder_words share "$share" readonly=on
        [[ -z $out ]] || folder_words out "$out"
}

# Ends what this run started, whatever ended the run itself.
clean_run() {
        local pid
        for pid in $(jobs -p); do
                kill "$pid" 2>/dev/null || :
        done
        [[ -z $job ]] || rm -rf "$job"
}

# say_times BEGIN_US: the guest's "started" file is made on this machine's clock, so its time can be compared.
say_times() {
        local begin_us=$1 now_us=${EPOCHREALTIME/./} started_us
        started_us=$(stat --format=%.6Y "$job/9p/started" 2>/dev/null) || return 0
        started_us=${started_us/./}
        say "power-on to command $(((started_us - begin_us) / 1000)) ms," \
                "to power-off $(((now_us - begin_us) / 1000)) ms"
}

cmd_run() {
        local qemu=() status=0 begin_us dir
        parse_run "$@"
        "$here/vm" build "$flavour" || exit "$EXIT_OURS"
        dir=$(image_dir "$flavour")
        trap clean_run EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM
        make_job
        qemu_words "$dir"

        cat "$job/stdout" &
        local stdout_pid=$!
        cat "$job/stderr" >&2 &
        local stderr_pid=$!
        : >"$job/console"
        if [[ -n $console ]]; then
                tail --follow --quiet "$job/console" >&2 &
        fi

        begin_us=${EPOCHREALTIME/./}
        timeout --kill-after=5 "$timeout_s" "${qemu[@]}" </dev/null >"$job/qemu.log" 2>&1 &
        wait $! || status=$?
        [[ -z $times ]] || say_times "$begin_us"
        finish "$status" "$stdout_pid" "$stderr_pid"
}

# finish QEMU_STATUS PID...: exits as the command did.
finish() {
        local status=$1
        if [[ -s $job/9p/status ]]; then
                wait "${@:2}" || :
                exit "$(<"$job/9p/status")"
        fi
        cat "$job/qemu.log" >&2
        [[ -n $console ]] || tail --lines=30 "$job/console" >&2
        # timeout(1) ends with 137 if QEMU had to be killed.
        if ((status == 124 || status == 137)); then
                say "ended after $timeout_s s"
                exit "$EXIT_TIMEOUT"
        fi
        die "the machine ended without a status; its console is above"
}

