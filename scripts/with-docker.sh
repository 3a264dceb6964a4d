#!/usr/bin/env bash
# with-docker.sh COMMAND… runs a command while Docker is there and has a Redis image. What is missing is installed
# (Debian or Ubuntu, as root), started or made; what was started is stopped again.
set -euo pipefail

export REDIS_IMAGE="${REDIS_IMAGE:-redis:7-alpine}"

work="$(mktemp -d)"
daemon=''

say() {
  echo "with-docker: $*" >&2
}

answers() {
  docker info >/dev/null 2>&1
}

stop_daemon() {
  if [ -z "$daemon" ]; then return; fi
  docker ps --all --quiet 2>/dev/null | xargs --no-run-if-empty docker rm --force >/dev/null 2>&1 || true
  kill "$daemon" 2>/dev/null || true
  wait "$daemon" 2>/dev/null || true
  daemon=''
}

clean_up() {
  stop_daemon
  rm -rf "$work"
}
trap clean_up EXIT

install_docker() {
  if ! apt-get --version >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ]; then
    say 'there is no Docker. On Debian or Ubuntu: sudo apt-get install docker.io iptables'
    return 1
  fi
  say 'installing docker.io and iptables with apt'
  # Only the program is wanted, not a service that starts with the machine.
  local apt=(env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq)
  "${apt[@]}" update >"$work/apt" 2>&1 && "${apt[@]}" install -y docker.io iptables >>"$work/apt" 2>&1 && return
  tail -n 20 "$work/apt" >&2
  return 1
}

# start_daemon OPTIONS… starts one that keeps its data apart from what the machine may have, and waits until it answers.
start_daemon() {
  # A session of its own: a signal to the terminal's or the time limit's group is for the command first.
  setsid dockerd --data-root "$work/data" "$@" >"$work/dockerd" 2>&1 &
  daemon=$!
  for _ in {1..120}; do
    if answers; then return; fi
    if ! kill -0 "$daemon" 2>/dev/null; then break; fi
    sleep 0.25
  done
  tail -n 5 "$work/dockerd" >&2
  return 1
}

# An image of the programs that are installed here: where no registry can be reached.
make_image() {
  local programs=(/bin/sh /bin/bash "$(command -v redis-server)" "$(command -v redis-cli)") libraries
  libraries="$(ldd "${programs[@]}" | grep --only-matching '/[^ ):]* (' | tr --delete ' (' | sort --unique)"
  # shellcheck disable=SC2086 # One word each.
  tar --create --dereference --absolute-names "${programs[@]}" $libraries |
    docker import --change 'CMD ["redis-server", "--protected-mode", "no", "--save", ""]' - "$REDIS_IMAGE" >/dev/null
}

have_image() {
  if docker image inspect "$REDIS_IMAGE" >/dev/null 2>&1; then return; fi
  if timeout 60 docker pull --quiet "$REDIS_IMAGE" >/dev/null 2>&1; then return; fi
  say "$REDIS_IMAGE can't be pulled: making it from the redis-server that is installed"
  make_image
}

# Whether a container starts and gets a port: a daemon that answers may still lack what that needs.
is_usable() {
  have_image && docker run --rm --publish 127.0.0.1::6379 "$REDIS_IMAGE" redis-server --version >/dev/null
}

provide_docker() {
  if answers; then
    is_usable
    return
  fi
  if ! command -v dockerd >/dev/null; then
    install_docker
    # Where the package has started it as a service.
    if answers; then
      is_usable
      return
    fi
  fi
  if [ "$(id -u)" -ne 0 ]; then
    say 'no Docker daemon answers, and only root can start one'
    return 1
  fi
  # Sandboxes may refuse overlay mounts, and changes of the packet filter: ports are then forwarded by a process.
  local options
  for options in '' '--storage-driver=vfs' '--iptables=false' '--storage-driver=vfs --iptables=false'; do
    # shellcheck disable=SC2086 # Several options, or none.
    if start_daemon $options && is_usable; then return; fi
    stop_daemon
    rm -rf "$work/data"
    say "dockerd${options:+ }$options: no container could be started"
  done
  return 1
}

provide_docker
"$@"
