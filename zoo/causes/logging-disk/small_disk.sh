# A disk of 64 MB (or LOG_DISK) in ./logs, for what is run here alone.
set -e
truncate -s "${LOG_DISK:-64M}" disk
/sbin/mkfs.ext4 -q -m 0 disk
mkdir -p logs
exec unshare -m sh -ec 'mount -o loop disk logs; exec "$@"' sh "$@"
