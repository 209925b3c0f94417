#include "apps/on_ranks.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"
#include "trireme/runtime/failure.hpp"
#include "trireme/runtime/identity.hpp"

namespace trireme::apps {

base::ExitCode run_on_ranks(Context& context,
                            const std::function<base::ExitCode(comm::MpiRuntime&)>& body) {
  const auto identity = base::value_or_throw(runtime::identify(context.environment));
  runtime::die_with_slurmstepd(identity);
  comm::MpiRuntime mpi;
  auto log = base::log::settings();
  log.identity = runtime::log_identity(identity, mpi);
  base::log::configure(log);
  runtime::report_failures(mpi, {});
  return mpi.run([&] {
    base::success_or_throw(runtime::check_world(identity, mpi.world_size()));
    return body(mpi);
  });
}

}  // namespace trireme::apps
