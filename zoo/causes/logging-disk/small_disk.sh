# A disk of 64 MB in ./logs, for what is run here alone.
set -e
truncate -s 64M disk
/sbin/mkfs.ext4 -q -m 0 disk
mkdir -p logs
exec unshare -m sh -ec 'mount -o loop disk logs; exec "$@"' sh "$@"
