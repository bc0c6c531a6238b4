#!/bin/sh
# Runs the command line of the container, such as `tritonserver --model-repository=/models`. Flags
# alone are those of the server.
case "$1" in
-*) exec tritonserver "$@" ;;
*) exec "$@" ;;
esac
