# SPDX-License-Identifier: Apache-2.0
# Accounting, where asked for: slurmdbd over a MariaDB of the instance's own, so that sacct answers.

accounting_port() {
  if [[ $mode == namespaces ]]; then echo 6819; else echo $((base_port + ports_per_instance - 1)); fi
}

write_slurmdbd_conf() {
  local host=ctl address=10.77.0.254
  [[ $mode == namespaces ]] || { host=$(hostname -s) address=127.0.0.1; }
  (
    umask 077
    cat >"$dir/slurmdbd.conf" <<END
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
DbdHost=$host
DbdAddr=$address
DbdPort=$(accounting_port)
SlurmUser=$(id -un)
LogFile=$dir/log/slurmdbd.log
PidFile=$dir/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=$(id -un)
StorageLoc=slurm_acct
END
  )
}

check_accounting() {
  local program
  for program in mariadbd slurmdbd sacctmgr; do
    command -v "$program" >/dev/null || fail "no $program; run scripts/setup --with-accounting"
  done
}

start_accounting() {
  # Without grant tables whoever reaches the socket may do anything: only the owner reaches it.
  (umask 077 && mkdir -p "$dir/db")
  # Small and quick: its data lives as long as the instance.
  in_mode daemon mariadb mariadbd --no-defaults --datadir="$dir/db" --user="$(id -un)" \
    --socket="$dir/db/socket" --pid-file="$dir/db/pid" --skip-networking --skip-grant-tables \
    --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900
  wait_until 20 test -S "$dir/db/socket" || fail "MariaDB does not start"
  write_slurmdbd_conf
  in_mode daemon slurmdbd env MYSQL_UNIX_PORT="$dir/db/socket" slurmdbd -D
  wait_until 20 slurm sacctmgr --immediate show cluster >/dev/null 2>&1 ||
    fail "slurmdbd does not answer"
  slurm sacctmgr --immediate add cluster "$name" >/dev/null
}
