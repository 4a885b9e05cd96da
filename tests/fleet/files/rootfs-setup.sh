#!/bin/sh
# Makes a bare Debian root a test host. Called by mmdebstrap with the path of the new root.
set -eu
root=$1
in_root() { chroot "$root" "$@"; }

# The name comes from the container, and so does the identity.
rm -f "$root/etc/hostname" "$root/etc/machine-id"
: >"$root/etc/machine-id"

# ops may do everything through sudo, guest nothing; vllm runs the servers.
in_root useradd --create-home --shell /bin/bash ops
in_root useradd --create-home --shell /bin/bash guest
in_root useradd --system --create-home --home-dir /var/lib/vllm --shell /usr/sbin/nologin vllm
echo 'ops ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/ops"
chmod 0440 "$root/etc/sudoers.d/ops"

# One file of keys for every user; each run mounts its own over it.
: >"$root/etc/ssh/authorized_keys"
cat >"$root/etc/ssh/sshd_config.d/fleet.conf" <<'SSHD'
AuthorizedKeysFile /etc/ssh/authorized_keys
PasswordAuthentication no
MaxStartups 100
SSHD

# The journal is kept on disk, as on a server.
mkdir -p "$root/var/log/journal"

# Nothing on a host may act on its own during a test.
in_root systemctl mask --quiet apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service fstrim.timer systemd-tmpfiles-clean.timer
