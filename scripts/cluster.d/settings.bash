# SPDX-License-Identifier: Apache-2.0
# The configuration files of an instance.

# In namespaces a node has an address of its own; with ports all are on the loopback.
node_lines() {
  local common="CPUs=$cpus RealMemory=4000 State=UNKNOWN"
  ((gpus > 0)) && common+=" Gres=gpu:$gpus"
  local index
  for ((index = 1; index <= nodes; ++index)); do
    if [[ $mode == namespaces ]]; then
      echo "NodeName=n$index NodeAddr=10.77.0.$index Port=6818 $common"
    else
      echo "NodeName=n$index NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((base_port + index)) $common"
    fi
  done
}

write_slurm_conf() {
  local controller="ctl(10.77.0.254)" port=6817 tmp=/tmp
  if [[ $mode == ports ]]; then
    controller="$(hostname -s)(127.0.0.1)" port=$base_port tmp=$dir/tmp.%n
  fi
  {
    cat <<END
ClusterName=$name
SlurmctldHost=$controller
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
# A requeued job waits as long as credentials last: 120 s by default.
AuthInfo=socket=$dir/munge.socket,cred_expire=20
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
TmpFS=$tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmix
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,bf_interval=2
PlugStackConfig=$dir/plugstack.conf
SlurmdTimeout=10
SlurmctldTimeout=10
InactiveLimit=0
KillWait=5
ReturnToService=2
# As long as there is one partition nothing is preempted; tests add another.
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
END
    [[ $mode == ports ]] && echo "CommunicationParameters=NoInAddrAny"
    ((gpus > 0)) && echo "GresTypes=gpu"
    [[ -z $switches ]] || echo "TopologyPlugin=topology/tree"
    accounting_lines
    node_lines
    echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
  } >"$dir/slurm.conf"
}

accounting_lines() {
  if [[ $accounting == yes ]]; then
    cat <<END
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$(if [[ $mode == namespaces ]]; then echo 10.77.0.254; else echo 127.0.0.1; fi)
AccountingStoragePort=$(accounting_port)
AccountingStoragePass=$dir/munge.socket
JobAcctGatherType=jobacct_gather/linux
END
  fi
}

# Simulated GPUs are character devices of our own that behave like /dev/null.
write_gres_conf() {
  ((gpus > 0)) || { : >"$dir/gres.conf"; return; }
  local device devices="$dir/dev/gpu[0-$((gpus - 1))]"
  mkdir -p "$dir/dev"
  for ((device = 0; device < gpus; ++device)); do
    if ! mknod -m 666 "$dir/dev/gpu$device" c 1 3 2>/dev/null; then
      devices="/dev/tty[0-$((gpus - 1))]"
      break
    fi
  done
  ((gpus > 1)) || devices=${devices/\[0-0\]/0}
  echo "AutoDetect=off" >"$dir/gres.conf"
  echo "NodeName=n[1-$nodes] Name=gpu File=$devices" >>"$dir/gres.conf"
}

# Leaf switches s1, s2... with the nodes of each, and one above them all.
write_topology_conf() {
  [[ -n $switches ]] || return 0
  local list index=0
  for list in $switches; do
    index=$((index + 1))
    echo "SwitchName=s$index Nodes=$list"
  done >"$dir/topology.conf"
  echo "SwitchName=core Switches=s[1-$index]" >>"$dir/topology.conf"
}

# Slurm 22.05's default, a tree for barriers, lets ranks leave MPI_Init before others have entered
# it: Open MPI's TCP transport then calls a null function, in one start of twenty when the machine
# is busy. The ring waits for all.
write_mpi_conf() { echo "PMIxCollFence=ring" >"$dir/mpi.conf"; }

write_hosts() {
  local index
  {
    echo "127.0.0.1 localhost"
    echo "10.77.0.254 ctl"
    for ((index = 1; index <= nodes; ++index)); do echo "10.77.0.$index n$index"; done
  } >"$dir/hosts"
}

# Users of the cluster read the plugin, too: a build may lie where they may not look.
copy_plugin() {
  local plugin=${spank%% *} copy
  copy=$dir/plugin/$(basename "$plugin")
  mkdir -p "$dir/plugin"
  install -m 755 "$plugin" "$copy"
  spank=$copy${spank#"$plugin"}
}

write_settings() {
  umask 022
  mkdir -p "$dir"/{state,log,spool,plugstack.conf.d}
  chmod 755 "$dir" "$dir/plugstack.conf.d"
  [[ -z $spank ]] || copy_plugin
  local node
  for node in $(node_names); do
    mkdir -p "$dir/spool/$node"
    [[ $mode == namespaces ]] || { mkdir -p "$dir/tmp.$node"; chmod 1777 "$dir/tmp.$node"; }
  done
  (umask 077 && head -c 128 /dev/urandom >"$dir/munge.key")
  write_slurm_conf
  write_gres_conf
  write_topology_conf
  write_mpi_conf
  write_hosts
  echo "include $dir/plugstack.conf.d/*.conf" >"$dir/plugstack.conf"
  [[ -z $spank ]] || echo "optional $spank" >"$dir/plugstack.conf.d/up.conf"
  # Without any file the include above is an error of its own.
  : >"$dir/plugstack.conf.d/none.conf"
  write_facts
}
