# NVIDIA's library is the one of the tests here (ANTIFREEZE_NVML names it), which reads from a text what it says.
export FAKE_NVML_FILE="$PWD/gpu.txt"
cp "$(dirname "$0")/healthy.txt" "$FAKE_NVML_FILE"
exec "$@"
