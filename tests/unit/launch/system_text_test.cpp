// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/system_text.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

TEST_CASE("MpiDefault is found in slurm.conf whatever its case") {
  CHECK(launch::default_mpi_in("ClusterName=a\nMpiDefault=pmix\n") == "pmix");
  CHECK(launch::default_mpi_in("  mpidefault=PMIX_V4 # ours\r\n") == "pmix_v4");
  CHECK(launch::default_mpi_in("#MpiDefault=pmix\n") == "none");
  CHECK(launch::default_mpi_in("") == "none");
  // The included file may say it.
  CHECK(launch::default_mpi_in("include more.conf\n").empty());
  CHECK(launch::default_mpi_in("include more.conf\nMpiDefault=pmi2") == "pmi2");
}

TEST_CASE("the counter of kills lies in the step's cgroup, not in the task's") {
  CHECK(launch::kill_counter_in("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_1\n") ==
        "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.events");
  CHECK(
      launch::kill_counter_in("4:cpu:/slurm/job_7/step_0\n3:memory:/slurm/uid_0/job_7/step_0\n") ==
      "/sys/fs/cgroup/memory/slurm/uid_0/job_7/step_0/memory.oom_control");
  CHECK_FALSE(launch::kill_counter_in("0::/user.slice\n").has_value());
  CHECK_FALSE(launch::kill_counter_in("/step_1:/\n").has_value());
  CHECK_FALSE(launch::kill_counter_in("").has_value());
}

TEST_CASE("what is mounted at a path is the last line of mountinfo that names it") {
  const auto* const table =
      "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
      "40 21 0:44 / /var/spool/trireme/jobs/7 rw,nosuid,nodev shared:9 master:1 - tmpfs "
      "trireme-1000 rw,size=1024k\n"
      "41 21 0:45 / /with\\040blank\\134 rw - tmpfs a\\040source rw\n"
      "42 40 0:46 / /var/spool/trireme/jobs/7 rw - fuse.sshfs host:/home rw\n"
      "broken line\n43 21 0:47 / /short rw - tmpfs\n";
  CHECK(launch::mount_source_in(table, "/") == "/dev/vda");
  CHECK(launch::mount_source_in(table, "/var/spool/trireme/jobs/7") == "host:/home");
  CHECK(launch::mount_source_in(table, "/with blank\\") == "a source");
  CHECK_FALSE(launch::mount_source_in(table, "/var/spool/trireme/jobs/77").has_value());
  CHECK_FALSE(launch::mount_source_in(table, "/var/spool/trireme/jobs").has_value());
  CHECK_FALSE(launch::mount_source_in(table, "/short").has_value());
  CHECK_FALSE(launch::mount_source_in("", "/").has_value());
}
