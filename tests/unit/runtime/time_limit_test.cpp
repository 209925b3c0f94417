#include "trireme/runtime/time_limit.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <ctime>

using namespace trireme;

namespace {

/// A squeue that answers what its file says, found before Slurm's own.
class PretendedSlurm {
 public:
  PretendedSlurm() : path_(std::getenv("PATH")) {
    const auto program =
        folder_.write("squeue", "#!/bin/sh\necho asked >> " + (folder_.path() / "asked").string() +
                                    "\ncat " + (folder_.path() / "left").string() + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  PretendedSlurm(const PretendedSlurm&) = delete;
  PretendedSlurm& operator=(const PretendedSlurm&) = delete;
  ~PretendedSlurm() { ::setenv("PATH", path_.c_str(), 1); }

  void says(const std::string& left) const { folder_.write("left", left + "\n"); }
  std::size_t times_asked() const {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(folder_.path() / "asked", none);
    return none ? 0 : bytes / 6;
  }

 private:
  tests::TemporaryFolder folder_;
  std::string path_;
};

base::Environment job_until(std::int64_t seconds) {
  return base::Environment({{"SLURM_JOB_ID", "12"},
                            {"SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + seconds)}});
}

}  // namespace

TEST_CASE("outside of a job no limit is ever near") {
  CHECK_FALSE(runtime::TimeLimit().is_near(1e9));
  CHECK_FALSE(runtime::TimeLimit(base::Environment{}).is_near(1e9));
}

TEST_CASE("a limit far away is not asked about") {
  const PretendedSlurm slurm;
  slurm.says("1:00");
  runtime::TimeLimit limit(job_until(3600));
  CHECK_FALSE(limit.is_near(60));
  CHECK(slurm.times_asked() == 0);
}

TEST_CASE("a limit that seems near is asked about again: it may have been extended or lifted") {
  const PretendedSlurm slurm;
  runtime::TimeLimit limit(job_until(30));
  slurm.says("2:00:00");
  CHECK_FALSE(limit.is_near(60));
  CHECK(slurm.times_asked() == 1);
  // The new limit counts from now on.
  CHECK_FALSE(limit.is_near(60));
  CHECK(slurm.times_asked() == 1);
  slurm.says("0:40");
  CHECK(limit.is_near(7201));
  slurm.says("UNLIMITED");
  CHECK_FALSE(limit.is_near(60));
  CHECK_FALSE(limit.is_near(1e9));
}

TEST_CASE("a Slurm that says nothing of use has extended nothing") {
  const PretendedSlurm slurm;
  runtime::TimeLimit limit(job_until(30));
  slurm.says("INVALID");
  CHECK(limit.is_near(60));
}
