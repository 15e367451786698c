#include "capture_known.h"

#include <string.h>

#include "count_of.h"

/* clang-format off */

/* Patterns: '#' is one or more digits, '%' one or two small letters, anything else itself. */
static const char *const components[] = {
        /* places */
        "boot", "dev", "efi", "etc", "home", "lost+found", "media", "mnt", "opt", "proc", "root",
        "run", "srv", "sys", "tmp", "usr", "var", "bin", "sbin", "lib", "lib#", "lib%#", "libexec",
        "local", "share", "include", "cache", ".cache", ".config", "log", "lock", "spool", "user",
        "shm", "mqueue", "hugepages", "pts", "ptmx", "mapper", "disk", "by-uuid", "by-id", "dri",
        "fd", "fdinfo", "ns", "net", "self", "thread-self", "task", "status", "mountinfo", "kernel",
        "debug", "tracing", "security", "config", "pstore", "bpf", "fs", "cgroup", "unified",
        "fuse", "connections", "binfmt_misc", "systemd", "journal", "credentials", "private",
        "containers", "overlay", "overlay2", "merged", "diff", "docker", "containerd", "kubelet",
        "snap", "nfs", "data", "datasets", "scratch", "site-packages", "dist-packages",
        "x86_64-linux-gnu", "aarch64-linux-gnu", "locale", "C.UTF-8", "gconv", "ld.so.cache",
        "memory", "cpu", "cpuacct", "cpu,cpuacct", "cpuset", "blkio", "pids", "freezer", "hugetlb",
        "perf_event", "net_cls", "net_prio", "net_cls,net_prio", "rdma", "misc",
        "deleted", "python", "python#", "python#.#", "bash", "sh", "dash",
        /* devices */
        "null", "zero", "full", "random", "urandom", "tty", "tty#", "ttyS#", "console", "kmsg",
        "fuse", "kvm", "vda", "sd%", "sd%#", "vd%", "vd%#", "xvd%", "xvd%#", "hd%", "hd%#", "nvme#",
        "nvme#n#", "nvme#n#p#", "mmcblk#", "mmcblk#p#", "dm-#", "md#", "md#p#", "loop#", "loop#p#",
        "zram#", "ram#", "nbd#", "sr#", "card#", "renderD#", "nvidia#", "nvidiactl", "nvidia-uvm",
        "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps", "nvidia-cap#", "kfd", "dxg",
        "devices", "virtual", "platform", "thermal", "thermal_zone#", "hwmon", "hwmon#",
        "infiniband", "uverbs#", "event#", "input", "cpu_dma_latency", "[aio]",
};

static const char *const targets[] = {
        "socket:[#]", "pipe:[#]", "mnt:[#]", "net:[#]", "pid:[#]", "user:[#]", "cgroup:[#]",
        "ipc:[#]", "uts:[#]", "time:[#]", "anon_inode:inotify", "anon_inode:[eventfd]",
        "anon_inode:[eventpoll]", "anon_inode:[timerfd]", "anon_inode:[signalfd]",
        "anon_inode:[pidfd]", "anon_inode:[fanotify]", "anon_inode:[io_uring]",
        "anon_inode:[perf_event]", "anon_inode:[userfaultfd]", "anon_inode:bpf-map",
        "anon_inode:bpf-prog", "anon_inode:bpf_link", "anon_inode:kvm-vm", "anon_inode:kvm-vcpu:#",
        "anon_inode:sync_file", "anon_inode:seccomp notify",
};

static const char *const cgroups[] = {
        "-.slice", "system.slice", "user.slice", "machine.slice", "app.slice", "session.slice",
        "background.slice", "init.scope", "init", "user-#.slice", "user@#.service",
        "user-runtime-dir@#.service", "session-#.scope", "session-c#.scope", "docker", "podman",
        "containerd", "lxc", "lxc.payload", "garden", "kubepods", "kubepods.slice", "besteffort",
        "burstable", "kubepods-besteffort.slice", "kubepods-burstable.slice", "slurm",
        "slurmstepd.scope", "system", "uid_#", "job_#", "step_#", "step_batch", "step_interactive",
        "task_#", "antifreeze", "dbus.service", "ssh.service", "cron.service",
        "systemd-journald.service", "systemd-logind.service", "antifreeze-vm-job.service",
        /* controllers */
        "memory", "cpu", "cpuacct", "cpu,cpuacct", "cpuset", "blkio", "io", "pids", "freezer",
        "devices", "hugetlb", "net_cls", "net_prio", "net_cls,net_prio", "perf_event", "rdma",
        "misc", "unified", "systemd",
};

static const char *const interfaces[] = {
        "lo", "eth#", "en%#", "eno#", "ens#", "enp#s#", "enp#s#f#", "enp#s#np#", "enp#s#f#np#",
        "ens#f#", "ens#f#np#", "ens#np#", "wlan#", "wlp#s#", "wlo#", "wwan#", "usb#", "ib#", "ibs#",
        "ibp#s#", "bond#", "team#", "br#", "docker#", "virbr#", "lxcbr#", "cni#", "flannel.#",
        "tun#", "tap#", "wg#", "tailscale#", "sit#", "tunl#", "gre#", "gretap#", "erspan#",
        "ip_vti#", "ip#_vti#", "ip#tnl#", "ip#gre#", "dummy#", "ifb#", "bonding_masters",
};

static const char *const supplies[] = {
        "BAT#", "BATT", "BATT#", "BAT%", "CMB#", "AC", "AC#", "ACAD", "ADP#", "ACPI#", "battery",
        "ac", "usb",
};

static const char *const fs_types[] = {
        "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "vfat", "exfat", "msdos",
        "ntfs", "ntfs3", "iso9660", "udf", "squashfs", "erofs", "overlay", "aufs", "tmpfs", "ramfs",
        "devtmpfs", "devpts", "hugetlbfs", "proc", "sysfs", "cgroup", "cgroup2", "mqueue",
        "debugfs", "tracefs", "securityfs", "selinuxfs", "configfs", "fusectl", "pstore",
        "efivarfs", "bpf", "binfmt_misc", "rpc_pipefs", "nfsd", "nsfs", "autofs", "rootfs", "nfs",
        "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "beegfs", "beegfs_nodev", "gpfs",
        "wekafs", "panfs", "orangefs", "pvfs2", "afs", "coda", "davfs", "9p", "drvfs", "virtiofs",
        "vboxsf", "fuse", "fuseblk", "ubifs", "fuse.vmhgfs-fuse", "fuse.sshfs", "fuse.glusterfs",
        "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.juicefs", "fuse.portal",
        "fuse.gvfsd-fuse", "fuse.lxcfs", "fuse.snapfuse", "fuse.mergerfs", "fuse.overlayfs",
        "fuse.fuse-overlayfs",
};

static const char *const fs_sources[] = {
        "none", "udev", "rootfs", "systemd-1", "portal", "gvfsd-fuse", "lxcfs", "sunrpc", "shm",
        "hugetlbfs", "run", "dev", "sys", "drivers", "cgroup_root",
};

/* Of a kernel's release, between numbers. */
static const char *const releases[] = {
        "amd#", "arm#", "x#_#", "aarch#", "generic", "lowlatency", "cloud", "rt", "aws", "azure",
        "gcp", "gke", "oracle", "raspi", "tegra", "nvidia", "microsoft", "standard", "WSL#", "oem",
        "pve", "arch#", "zen#", "lts", "default", "linuxkit",
};
/* clang-format on */

static bool is_small(char c)
{
        return c >= 'a' && c <= 'z';
}

static bool matches(struct afz_span s, const char *pattern)
{
        size_t i = 0;
        for (; *pattern; pattern++) {
                size_t from = i;
                if (*pattern == '#')
                        while (i < s.n && afz_is_digit(s.p[i]))
                                i++;
                else if (*pattern == '%')
                        while (i < s.n && i < from + 2 && is_small(s.p[i]))
                                i++;
                else if (i < s.n && s.p[i] == *pattern)
                        i++;
                if (i == from)
                        return false;
        }
        return i == s.n;
}

static bool is_in(struct afz_span s, const char *const *table, size_t rows)
{
        for (size_t i = 0; i < rows; i++)
                if (matches(s, table[i]))
                        return true;
        return false;
}

bool afz_known_component(struct afz_span name)
{
        /* Pids, uids, numbers of terminals; a longer one could be anything. */
        if (name.n <= 7 && matches(name, "#"))
                return true;
        return is_in(name, components, AFZ_COUNT_OF(components));
}

bool afz_known_target(struct afz_span target)
{
        return is_in(target, targets, AFZ_COUNT_OF(targets));
}

bool afz_known_cgroup(struct afz_span name)
{
        return is_in(name, cgroups, AFZ_COUNT_OF(cgroups));
}

bool afz_known_interface(struct afz_span name)
{
        return is_in(name, interfaces, AFZ_COUNT_OF(interfaces));
}

bool afz_known_supply(struct afz_span name)
{
        return is_in(name, supplies, AFZ_COUNT_OF(supplies));
}

bool afz_known_fs_type(struct afz_span type)
{
        return is_in(type, fs_types, AFZ_COUNT_OF(fs_types));
}

bool afz_known_fs_source(struct afz_span source)
{
        return afz_known_fs_type(source) || is_in(source, fs_sources, AFZ_COUNT_OF(fs_sources));
}

bool afz_known_release(struct afz_span part)
{
        size_t i = 0;
        while (i < part.n && (afz_is_digit(part.p[i]) || part.p[i] == '.' || part.p[i] == '+'))
                i++;
        return i == part.n || is_in(part, releases, AFZ_COUNT_OF(releases));
}

/* WHOLE: this name and no other. FAMILY: also the start of a longer one, of which this much and a
 * version behind it are known. */
enum extent { WHOLE, FAMILY };

struct name {
        const char *text;
        enum extent extent;
};

/* clang-format off */
static const struct name programs[] = {
        {"python", FAMILY}, {"pypy", FAMILY}, {"pt_data_worker", FAMILY}, {"pt_data_pin", FAMILY},
        {"jupyter", FAMILY}, {"ipykernel_launcher", FAMILY}, {"mpiexec", FAMILY},
        {"torchrun", WHOLE}, {"accelerate", WHOLE}, {"deepspeed", WHOLE}, {"mpirun", WHOLE},
        {"horovodrun", WHOLE}, {"srun", WHOLE}, {"sbatch", WHOLE}, {"slurmstepd", WHOLE},
        {"uv", WHOLE}, {"sh", WHOLE}, {"bash", WHOLE}, {"dash", WHOLE}, {"zsh", WHOLE},
        {"fish", WHOLE}, {"env", WHOLE}, {"time", WHOLE}, {"nohup", WHOLE}, {"sudo", WHOLE},
        {"su", WHOLE}, {"timeout", WHOLE}, {"nice", WHOLE}, {"stdbuf", WHOLE}, {"xargs", WHOLE},
        {"antifreeze", WHOLE}, {"afz-", FAMILY}, {"node", WHOLE}, {"java", WHOLE}, {"perl", WHOLE},
        {"ruby", WHOLE}, {"julia", WHOLE}, {"gcc", WHOLE}, {"cc1", WHOLE}, {"clang", WHOLE},
        {"make", WHOLE}, {"ninja", WHOLE}, {"cmake", WHOLE}, {"sleep", WHOLE}, {"cat", WHOLE},
        {"tail", WHOLE}, {"less", WHOLE}, {"grep", WHOLE}, {"find", WHOLE}, {"tar", WHOLE},
        {"gzip", WHOLE}, {"rsync", WHOLE}, {"scp", WHOLE}, {"sftp-server", WHOLE}, {"git", WHOLE},
        {"ssh", WHOLE}, {"sshd", WHOLE}, {"ssh-agent", WHOLE}, {"tmux", WHOLE},
        {"tmux: server", WHOLE}, {"tmux: client", WHOLE}, {"screen", WHOLE}, {"top", WHOLE},
        {"htop", WHOLE}, {"vim", WHOLE}, {"nano", WHOLE}, {"emacs", WHOLE}, {"code", WHOLE},
        {"systemd", WHOLE}, {"(sd-pam)", WHOLE}, {"init", WHOLE}, {"systemd-journald", WHOLE},
        {"systemd-journal", WHOLE}, {"systemd-logind", WHOLE}, {"systemd-udevd", WHOLE},
        {"systemd-network", WHOLE}, {"systemd-resolve", WHOLE}, {"systemd-timesyn", WHOLE},
        {"systemd-oomd", WHOLE}, {"dbus-daemon", WHOLE}, {"dbus-broker", WHOLE}, {"polkitd", WHOLE},
        {"cron", WHOLE}, {"agetty", WHOLE}, {"login", WHOLE}, {"rsyslogd", WHOLE},
        {"chronyd", WHOLE}, {"NetworkManager", WHOLE}, {"containerd", WHOLE}, {"dockerd", WHOLE},
        {"tini", WHOLE}, {"Xorg", WHOLE}, {"Xwayland", WHOLE}, {"gnome-shell", WHOLE},
        {"kwin_wayland", WHOLE}, {"plasmashell", WHOLE}, {"pipewire", WHOLE},
        {"wireplumber", WHOLE}, {"firefox", WHOLE}, {"chrome", WHOLE}, {"nvidia-smi", WHOLE},
        {"nvidia-persiste", WHOLE}, {"nv-hostengine", WHOLE}, {"kthreadd", WHOLE},
        {"kswapd", FAMILY}, {"kcompactd", FAMILY}, {"khugepaged", WHOLE},
};

static const struct name modules[] = {
        {"torch.distributed.run", WHOLE}, {"torch.distributed.launch", WHOLE},
        {"accelerate", FAMILY}, {"ipykernel_launcher", FAMILY}, {"ipykernel", FAMILY},
        {"jupyter", FAMILY}, {"notebook", WHOLE}, {"pip", WHOLE}, {"venv", WHOLE},
        {"pytest", WHOLE}, {"unittest", WHOLE}, {"http.server", WHOLE}, {"pdb", WHOLE},
        {"cProfile", WHOLE},
};

static const struct name code[] = {
        {"from multiprocessing.spawn import", FAMILY},
        {"from multiprocessing.resource_tracker", FAMILY},
        {"from multiprocessing.semaphore_tracker", FAMILY},
        {"from multiprocessing.forkserver", FAMILY},
        {"from joblib.externals.loky.backend.resource_tracker", FAMILY},
};

static const char *const variables[] = {
        "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS",
};
/* clang-format on */

/* Digits and points behind a name, as in "python3.11"; a long row of them is no version. */
static size_t version_length(struct afz_span s)
{
        size_t n = 0;
        while (n < s.n && (afz_is_digit(s.p[n]) || s.p[n] == '.'))
                n++;
        while (n > 0 && s.p[n - 1] == '.')
                n--;
        return n <= 7 ? n : 0;
}

static size_t known_length(struct afz_span s, const struct name *table, size_t rows)
{
        for (size_t i = 0; i < rows; i++) {
                size_t n = strlen(table[i].text);
                if (!afz_span_starts(s, table[i].text))
                        continue;
                if (table[i].extent == FAMILY)
                        return n + version_length((struct afz_span){s.p + n, s.n - n});
                if (s.n == n)
                        return n;
        }
        return 0;
}

size_t afz_known_program(struct afz_span name)
{
        return known_length(name, programs, AFZ_COUNT_OF(programs));
}

size_t afz_known_module(struct afz_span name)
{
        return known_length(name, modules, AFZ_COUNT_OF(modules));
}

size_t afz_known_code(struct afz_span text)
{
        return known_length(text, code, AFZ_COUNT_OF(code));
}

bool afz_known_variable(struct afz_span name)
{
        return is_in(name, variables, AFZ_COUNT_OF(variables));
}
