# A /dev/shm of 64 MB, as a container has, for what is run here alone.
exec unshare -m sh -ec 'mount -t tmpfs -o size=64m shm /dev/shm; exec "$@"' sh "$@"
