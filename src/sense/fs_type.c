#include "fs_type.h"

#include "count_of.h"

#define NETWORK "over the network"
#define PROGRAM "through a program (FUSE)"
#define SHARED  "shared by the host of this virtual machine"

/* clang-format off: one row a line */
static const struct afz_fs_type table[] = {
        {"nfs", AFZ_FS_REMOTE, NETWORK},
        {"nfs4", AFZ_FS_REMOTE, NETWORK},
        {"cifs", AFZ_FS_REMOTE, NETWORK},
        {"smb3", AFZ_FS_REMOTE, NETWORK},
        {"smbfs", AFZ_FS_REMOTE, NETWORK},
        {"ceph", AFZ_FS_REMOTE, NETWORK},
        {"lustre", AFZ_FS_REMOTE, NETWORK},
        {"beegfs", AFZ_FS_REMOTE, NETWORK},
        {"beegfs_nodev", AFZ_FS_REMOTE, NETWORK},
        {"gpfs", AFZ_FS_REMOTE, NETWORK},
        {"wekafs", AFZ_FS_REMOTE, NETWORK},
        {"panfs", AFZ_FS_REMOTE, NETWORK},
        {"orangefs", AFZ_FS_REMOTE, NETWORK},
        {"pvfs2", AFZ_FS_REMOTE, NETWORK},
        {"afs", AFZ_FS_REMOTE, NETWORK},
        {"coda", AFZ_FS_REMOTE, NETWORK},
        {"davfs", AFZ_FS_REMOTE, NETWORK},
        {"9p", AFZ_FS_REMOTE, SHARED}, /* on WSL2: the drives of Windows */
        {"drvfs", AFZ_FS_REMOTE, SHARED},
        {"virtiofs", AFZ_FS_REMOTE, SHARED},
        {"vboxsf", AFZ_FS_REMOTE, SHARED},
        {"fuse.vmhgfs-fuse", AFZ_FS_REMOTE, SHARED},
        {"fuse.sshfs", AFZ_FS_REMOTE, "over the network (sshfs)"},
        {"fuse.glusterfs", AFZ_FS_REMOTE, "over the network (GlusterFS)"},
        {"fuse.s3fs", AFZ_FS_REMOTE, "over the network (object store)"},
        {"fuse.gcsfuse", AFZ_FS_REMOTE, "over the network (object store)"},
        {"fuse.rclone", AFZ_FS_REMOTE, "over the network (rclone)"},
        {"fuse.juicefs", AFZ_FS_REMOTE, "over the network (JuiceFS)"},
        {"fuse.", AFZ_FS_REMOTE, PROGRAM},
        {"fuse", AFZ_FS_REMOTE, PROGRAM},
        {"fuseblk", AFZ_FS_REMOTE, PROGRAM}, /* ntfs-3g: slow, and blocks when it is stuck */

        {"tmpfs", AFZ_FS_MEMORY, "in memory"},
        {"ramfs", AFZ_FS_MEMORY, "in memory"},
        {"hugetlbfs", AFZ_FS_MEMORY, "in huge pages"},
        {"btrfs", AFZ_FS_LOCAL, NULL},
        {"zfs", AFZ_FS_LOCAL, NULL},
        {"bcachefs", AFZ_FS_LOCAL, NULL},
        {"overlay", AFZ_FS_LOCAL, "layers of a container"},
        {"aufs", AFZ_FS_LOCAL, "layers of a container"},
        {"ubifs", AFZ_FS_LOCAL, NULL},

        {"proc", AFZ_FS_KERNEL, NULL},
        {"sysfs", AFZ_FS_KERNEL, NULL},
        {"devtmpfs", AFZ_FS_KERNEL, NULL},
        {"devpts", AFZ_FS_KERNEL, NULL},
        {"cgroup", AFZ_FS_KERNEL, NULL},
        {"cgroup2", AFZ_FS_KERNEL, NULL},
        {"mqueue", AFZ_FS_KERNEL, NULL},
        {"debugfs", AFZ_FS_KERNEL, NULL},
        {"tracefs", AFZ_FS_KERNEL, NULL},
        {"securityfs", AFZ_FS_KERNEL, NULL},
        {"selinuxfs", AFZ_FS_KERNEL, NULL},
        {"configfs", AFZ_FS_KERNEL, NULL},
        {"fusectl", AFZ_FS_KERNEL, NULL},
        {"pstore", AFZ_FS_KERNEL, NULL},
        {"efivarfs", AFZ_FS_KERNEL, NULL},
        {"bpf", AFZ_FS_KERNEL, NULL},
        {"binfmt_misc", AFZ_FS_KERNEL, NULL},
        {"rpc_pipefs", AFZ_FS_KERNEL, NULL},
        {"nfsd", AFZ_FS_KERNEL, NULL},
        {"nsfs", AFZ_FS_KERNEL, NULL},
        {"autofs", AFZ_FS_KERNEL, NULL}, /* asking would mount what is not mounted */
};
/* clang-format on */

static const struct afz_fs_type on_disk = {"", AFZ_FS_LOCAL, NULL};
static const struct afz_fs_type no_row = {"", AFZ_FS_UNKNOWN, NULL};

const struct afz_fs_type *afz_fs_type_of(const struct afz_mount *mount)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(table); i++) {
                const char *type = table[i].type;
                struct afz_span have = mount->type;
                bool whole_family = afz_span_ends(afz_span_str(type), ".");
                if (whole_family ? afz_span_starts(have, type) : afz_span_eq(have, type))
                        return &table[i];
        }
        return mount->major > 0 ? &on_disk : &no_row;
}

bool afz_fs_type_has_no_disk(const struct afz_mount *mount)
{
        enum afz_fs_class class = afz_fs_type_of(mount)->class;
        return class == AFZ_FS_MEMORY || (class == AFZ_FS_REMOTE && mount->major == 0);
}
