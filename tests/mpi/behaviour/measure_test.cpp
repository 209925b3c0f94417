#include "trireme/comm/measure.hpp"

#include "group_fixture.hpp"

using namespace trireme;
using namespace trireme::testing;

TEST_CASE("every collective is measured with right results on every backend") {
  comm::MeasureOptions options;
  options.repeats = 2;
  options.backends = {host_backends.begin(), host_backends.end()};
  for (const char* name :
       {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "send_receive"}) {
    options.collective = base::value_or_throw(comm::collective_named(name));
    for (const auto bytes : std::array<std::size_t, 3>{4, 4096, 1 << 20}) {
      options.bytes = bytes;
      const auto results = comm::measure(mpi(), options);
      REQUIRE(results.size() == options.backends.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        CHECK(results[i].ranks == mpi().world_size());
        CHECK(results[i].backend ==
              (mpi().world_size() == 1 ? "local" : comm::name(options.backends[i])));
        CHECK(results[i].bytes % (4 * static_cast<std::size_t>(mpi().world_size())) == 0);
        CHECK(results[i].fastest_seconds > 0);
        CHECK(results[i].seconds >= results[i].fastest_seconds);
      }
    }
  }
}

TEST_CASE("reductions of bf16 are measured on the backends that have them") {
  comm::MeasureOptions options;
  options.repeats = 1;
  options.dtype = DType::bf16;
  options.bytes = 300000;
  options.backends = {comm::Backend::mpi, comm::Backend::shared};
  for (const auto collective : {comm::Collective::all_reduce, comm::Collective::reduce_scatter}) {
    options.collective = collective;
    CHECK(comm::measure(mpi(), options).size() == options.backends.size());
  }
}
