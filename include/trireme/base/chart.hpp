// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Axes and colours that pictures of runs and of plans share.
namespace trireme::base {

/// Fills of a step's parts. They differ in lightness, too: with the commonest colour blindness they
/// can be told apart.
namespace step_fill {
inline constexpr std::string_view forward = "#6baed6";
inline constexpr std::string_view backward = "#31a354";
inline constexpr std::string_view weight = "#f16913";
inline constexpr std::string_view update = "#08519c";
inline constexpr std::string_view tensor = "#fdae6b";
inline constexpr std::string_view gradients = "#d94801";
inline constexpr std::string_view communication = "#7f2704";
inline constexpr std::string_view bubble = "#e5e5e5";
inline constexpr std::string_view wait = "#bdbdbd";
}  // namespace step_fill

/// Fills of parts of a whole, and of curves, as the page of a report has them (page.css, --p0 to
/// --p8).
inline constexpr std::array<std::string_view, 9> part_fills{"#0072b2", "#cc79a7", "#d55e00",
                                                            "#9aa3ad", "#f0e442", "#56b4e9",
                                                            "#009e73", "#e69f00", "#785ef0"};

/// Multiples of 1, 2 or 5 times a power of ten within the range: at most `most` of them.
std::vector<double> ticks_of(double low, double high, std::size_t most);

/// Number of a tick or a figure: "0.002", "1.5e-05", "12 k".
std::string short_text(double number);

}  // namespace trireme::base
