// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/chart.hpp"

#include "trireme/base/format.hpp"

#include <cmath>

namespace trireme::base {

std::vector<double> ticks_of(double low, double high, std::size_t most) {
  std::vector<double> ticks;
  if (!(high > low) || most == 0) return ticks;
  const double rough = (high - low) / static_cast<double>(most);
  double step = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (factor * step >= rough) {
      step *= factor;
      break;
    }
  }
  // Numbers of steps, so that no tick is 0.30000000000000004.
  for (double index = std::ceil(low / step); index * step <= high; ++index) {
    ticks.push_back(index * step);
    if (ticks.size() > most) break;
  }
  return ticks;
}

std::string short_text(double number) {
  if (!std::isfinite(number)) return "–";
  const double size = std::fabs(number);
  if (size >= 1e12) return format("{:.4g} T", number / 1e12);
  if (size >= 1e9) return format("{:.4g} G", number / 1e9);
  if (size >= 1e6) return format("{:.4g} M", number / 1e6);
  if (size >= 1e4) return format("{:.4g} k", number / 1e3);
  return format("{:.4g}", number);
}

}  // namespace trireme::base
