// SPDX-License-Identifier: Apache-2.0
// Hover, axes, smoothing and the choice of runs. Draws into the pictures that the page brings.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const width = 1000, height = 300;
  const state = { axis: "step", weight: data.smoothing, logarithmic: false, shown: data.runs.map(() => true) };
  const isThere = Number.isFinite;

  function shortText(number) {
    if (!isThere(number)) return "–";
    for (const [size, unit] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
      const divisor = size === 1e4 ? 1e3 : size;
      if (Math.abs(number) >= size) return Number((number / divisor).toPrecision(4)) + unit;
    }
    const short = Number(number.toPrecision(4));
    return Math.abs(short) < 1e-4 && short !== 0 ? short.toExponential() : String(short);
  }

  function smoothed(values, weight) {
    let average = 0, share = 0;
    return values.map((value) => {
      if (!isThere(value)) return value;
      average = weight * average + (1 - weight) * value;
      share = weight * share + (1 - weight);
      return average / share;
    });
  }

  function ticksOf(low, high, most) {
    const ticks = [], rough = (high - low) / most;
    if (!(rough > 0)) return ticks;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-12));
    for (let index = Math.ceil(low / step); index * step <= high && ticks.length <= most; ++index) ticks.push(index * step);
    return ticks;
  }

  // Powers of ten, and between them 2 and 5 where there are few.
  function logarithmicTicks(low, high) {
    for (const factors of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]]) {
      const ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) {
        for (const factor of factors) {
          const tick = factor * 10 ** power;
          if (tick >= low && tick <= high) ticks.push(tick);
        }
      }
      if (ticks.length >= 3) return ticks;
    }
    return ticksOf(low, high, 4);
  }

  function frameOf(xs, low, high, logarithmic) {
    let left = Infinity, right = -Infinity;
    for (const x of xs.flat()) if (isThere(x)) { left = Math.min(left, x); right = Math.max(right, x); }
    if (!(right > left)) right = left + 1;
    const scale = logarithmic ? Math.log10 : (value) => value;
    return {
      left, right, low, high, logarithmic,
      x: (value) => (value - left) / (right - left) * width,
      y: (value) => {
        if (logarithmic && value <= 0) return NaN;
        const up = (scale(value) - scale(low)) / (scale(high) - scale(low)) * height;
        return height - Math.min(2 * height, Math.max(-height, up));
      },
    };
  }

  function linePath(frame, xs, ys, breaks) {
    let path = "", draws = false;
    const ends = new Set(breaks);
    ys.forEach((value, index) => {
      const y = isThere(value) && isThere(xs[index]) ? frame.y(value) : NaN;
      if (isThere(y)) path += `${draws ? "L" : "M"}${frame.x(xs[index]).toFixed(1)} ${y.toFixed(1)}${draws ? "" : "h0"}`;
      draws = isThere(y) && !ends.has(index);
    });
    return path;
  }

  function areaPath(frame, xs, lows, highs) {
    let there = "", back = "";
    xs.forEach((x, index) => {
      const low = isThere(lows[index]) ? frame.y(lows[index]) : NaN;
      const high = isThere(highs[index]) ? frame.y(highs[index]) : NaN;
      if (!isThere(x) || !isThere(high)) return;
      there += `${there ? "L" : "M"}${frame.x(x).toFixed(1)} ${high.toFixed(1)}`;
      back = `L${frame.x(x).toFixed(1)} ${(isThere(low) ? low : 2 * height).toFixed(1)}` + back;
    });
    return there && there + back + "Z";
  }

  function startsPath(frame, run) {
    const xs = run.x[state.axis];
    return run.starts.filter((column) => isThere(xs[column])).map((column) => `M${frame.x(xs[column]).toFixed(1)} 0V${height}`).join("");
  }

  function labels(plot, frame) {
    const span = (side, percent, text) => {
      const one = document.createElement("span");
      one.style[side] = `${percent.toFixed(2)}%`;
      one.textContent = text;
      return one;
    };
    plot.querySelector(".axis").textContent = { step: "step", tokens: "tokens", hours: "hours" }[state.axis];
    const ys = frame.logarithmic ? logarithmicTicks(frame.low, frame.high) : ticksOf(frame.low, frame.high, 5);
    plot.querySelector(".y").replaceChildren(...ys.map((tick) => span("bottom", 100 - frame.y(tick) / height * 100, shortText(tick))));
    plot.querySelector(".x").replaceChildren(plot.querySelector(".axis"), ...ticksOf(frame.left, frame.right, 5).map((tick) => span("left", frame.x(tick) / width * 100, shortText(tick))));
    const grid = plot.querySelector(".grid");
    grid.replaceChildren(...ys.map((tick) => {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
      line.setAttribute("d", `M0 ${frame.y(tick).toFixed(1)}H${width}`);
      return line;
    }));
  }

  const set = (element, selector, path) => {
    const found = element.querySelector(selector);
    if (found) found.setAttribute("d", path);
  };
  const placesOf = (run, id) => (run.curves[id].x || run.x)[state.axis];

  function drawCurve(figure) {
    const curve = data.curves.find((one) => one.id === figure.dataset.curve);
    const logarithmic = state.logarithmic && isThere(curve.least);
    const frame = frameOf(data.runs.map((run) => run.x[state.axis]), logarithmic ? curve.least : curve.low, curve.high, logarithmic);
    labels(figure.querySelector(".plot"), frame);
    data.runs.forEach((run, index) => {
      const group = figure.querySelector(`g.run[data-run="${index}"]`);
      const values = run.curves[curve.id], xs = placesOf(run, curve.id);
      const breaks = values.x ? [] : run.breaks;
      group.style.display = state.shown[index] ? "" : "none";
      if (values.low) set(group, ".band", areaPath(frame, xs, values.low, values.high));
      set(group, ".raw", curve.smooth && state.weight > 0 ? linePath(frame, xs, values.mean, breaks) : "");
      set(group, ".line", linePath(frame, xs, curve.smooth ? smoothed(values.mean, state.weight) : values.mean, breaks));
      set(group, ".starts", startsPath(frame, run));
      set(group, ".dots", linePath(frame, xs, values.mean, xs.map((_, point) => point)));
    });
    figure.frame = frame;
  }

  function drawParts(figure) {
    const run = data.runs[figure.dataset.parts], xs = run.parts_x[state.axis];
    const frame = frameOf([xs], 0, Number(figure.dataset.high), false);
    labels(figure.querySelector(".plot"), frame);
    let below = xs.map(() => 0);
    run.parts.forEach((part, index) => {
      const above = below.map((value, column) => value + part[column]);
      set(figure, `.p${index}`, areaPath(frame, xs, below, above));
      below = above;
    });
    set(figure, ".starts", startsPath(frame, run));
    figure.frame = frame;
  }

  const figures = [...document.querySelectorAll("figure.chart")];
  const draw = () => figures.forEach((figure) => figure.dataset.curve ? drawCurve(figure) : drawParts(figure));

  function nearest(xs, x) {
    let best = -1;
    xs.forEach((value, index) => {
      if (isThere(value) && (best < 0 || Math.abs(value - x) < Math.abs(xs[best] - x))) best = index;
    });
    return best;
  }

  function linesAt(figure, x) {
    const lines = [];
    const place = (at) => ({ step: `step ${shortText(at)}`, tokens: `${shortText(at)} tokens`, hours: `${shortText(at)} h` })[state.axis];
    if (figure.dataset.parts) {
      const run = data.runs[figure.dataset.parts], xs = run.parts_x[state.axis], column = nearest(xs, x);
      if (column < 0) return lines;
      lines.push(place(xs[column]));
      run.parts.forEach((part, index) => {
        if (part[column] > 0) lines.push(`${data.parts[index]} ${shortText(part[column])} ms`);
      });
      return lines;
    }
    data.runs.forEach((run, index) => {
      const values = run.curves[figure.dataset.curve], xs = placesOf(run, figure.dataset.curve);
      const column = state.shown[index] ? nearest(xs, x) : -1;
      if (column < 0) return;
      const range = values.low && values.low[column] !== values.high[column] ? ` (${shortText(values.low[column])} to ${shortText(values.high[column])})` : "";
      const name = data.runs.length > 1 ? `${run.name}: ` : "";
      lines.push(`${name}${shortText(values.mean[column])}${range}, ${place(xs[column])}`);
    });
    return lines;
  }

  function hover(figure) {
    const plot = figure.querySelector(".plot"), svg = plot.querySelector("svg");
    const cursor = document.createElement("div"), tip = document.createElement("div");
    cursor.className = "cursor";
    tip.className = "tip";
    const hide = () => { cursor.remove(); tip.remove(); };
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      if (share < 0 || share > 1) return hide();
      const { left, right } = figure.frame;
      tip.textContent = linesAt(figure, left + share * (right - left)).join("\n");
      cursor.style.left = `${event.clientX - plot.getBoundingClientRect().left}px`;
      tip.style.left = share < 0.5 ? "auto" : "56px";
      tip.style.right = share < 0.5 ? "4px" : "auto";
      plot.append(cursor, tip);
    });
  }

  const form = document.querySelector(".controls");
  if (form) {
    document.body.classList.add("scripted");
    form.hidden = false;
    form.addEventListener("input", () => {
      state.axis = form.elements.axis.value;
      state.weight = Number(form.elements.smoothing.value);
      state.logarithmic = form.elements.logarithmic.checked;
      draw();
    });
    document.querySelectorAll(".legend label").forEach((label) => {
      label.addEventListener("change", () => {
        state.shown[label.dataset.run] = label.querySelector("input").checked;
        draw();
      });
    });
  }
  draw();
  figures.forEach(hover);
})();
