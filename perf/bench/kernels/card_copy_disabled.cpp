#include "trireme/base/error.hpp"

#include "card_copy.hpp"

namespace trireme::bench {

double card_copy_rate(std::int64_t) {
  throw base::Error(base::ExitCode::topology,
                    "CUDA is not in this build; configure with -DTRIREME_ENABLE_CUDA=ON");
}

}  // namespace trireme::bench
