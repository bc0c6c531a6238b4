#!/bin/sh
# As answer.py, in the container image: with sh and curl alone, as probes have them.
#     answer.sh PORT COMMAND...
port=$1
shift
address=http://127.0.0.1:$port
"$@" --http-port="$port" --grpc-port=0 --metrics-port=0 \
    --http-address=127.0.0.1 --grpc-address=127.0.0.1 --metrics-address=127.0.0.1 &
server=$!
trap 'kill -KILL $server 2>/dev/null' EXIT
tries=600
while [ "$(curl -s -o /dev/null -w '%{http_code}' "$address/v2/health/ready")" != 200 ]; do
    tries=$((tries - 1))
    if [ $tries = 0 ] || ! kill -0 $server; then
        echo "the server did not become ready"
        exit 1
    fi
    sleep 0.1
done
if [ -n "$MODEL_REQUEST" ]; then
    curl -sS --fail -d "$MODEL_REQUEST" "$address/v2/models/dynamic_shape/infer" || exit 1
    echo
fi
kill -TERM $server
wait $server
