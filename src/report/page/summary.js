// ---- what is said first: the verdict, the outputs, the cause, the fix ----

const summary = (() => {
  const good = data.verdict === "faithful";

  function bar() {
    byId("verdict").textContent = good ? "faithful" : "unfaithful";
    byId("verdict").classList.add(good ? "good" : "bad");
    const parts = data.model.split("/"), file = parts.pop(), folder = parts.pop();
    byId("model").replaceChildren(folder && folder !== "." ? el("small", {}, `${folder}/`) : "", file);
    byId("model").title = data.model;
    const how = data.precision === "as declared" ? "as declared" : `in ${data.precision}`;
    byId("facts").textContent = `${how} on ${data.target}${data.fused ? ", fused" : ""} · ${many(data.samples, "sample")} · ${many(layers.length, "layer")}`;
  }

  // ---- outputs ----

  function outputLine(o) {
    if (o.nan) return `NaN in ${grouped(o.nan)} places`;
    if (o.inf) return `infinite in ${grouped(o.inf)} places`;
    if (o.snr_db !== null) return `SNR ${decibels(number(o.snr_db))}`;
    return o.differing ? `differs in ${grouped(o.differing)} places` : "equal";
  }
  function outputs() {
    const many = data.outputs.length > 6;
    const list = [...data.outputs].sort((a, b) => (a.verdict === "faithful") - (b.verdict === "faithful"));
    const golden = list.find((o) => o.truth_against_golden);
    byId("outputs").replaceChildren(
      el("h2", {}, list.length === 1 ? "Output" : "Outputs"),
      el("ul", {class: "outputs"}, list.slice(0, 6).map((o) => el("li", {},
        el("span", {class: `mark ${o.verdict === "faithful" ? "good" : "bad"}`, "aria-label": o.verdict}, o.verdict === "faithful" ? "✓" : "✗"),
        el("div", {}, el("bdi", {class: "mono"}, o.name), el("b", {class: o.verdict === "faithful" ? "" : "bad"}, outputLine(o)),
          o.max_abs !== null && !o.nan && !o.inf ? el("small", {}, `max ${short(number(o.max_abs))} · RMS ${short(number(o.rms))} · cosine ${number(o.cosine).toFixed(6)}`) : null)))),
      many ? el("p", {class: "notes"}, `and ${data.outputs.length - 6} more`) : "",
      golden ? el("p", {class: "notes"}, `golden: truth agrees to ${decibels(number(golden.truth_against_golden.snr_db))}${data.blame === "export" ? ", which rounding does not explain" : ""}`) : "",
      data.unmet ? el("p", {class: "notes bad"}, `not met: ${data.unmet}`) : "");
  }

  // ---- cause ----

  const BLAME = {
    none: "nothing to blame", precision: "the precision is to blame", engine: "the engine is to blame", export: "the export is to blame, not the precision",
    model: "the model is to blame: it is ill-conditioned or leaves its own range", input: "the inputs are to blame",
  };
  function culpritLine(c, i) {
    const layer = layerOf(c);
    const word = i === 0 ? (c.verdict === "export" ? "export" : "origin") : c.born ? "also" : "next";
    const title = c.nodes[0] || "";
    return el("li", {}, el("em", {}, word), el("div", {},
      layer ? el("button", {type: "button", class: "link", title, onclick: () => { select(layer, "cause"); graph.show(layer, true); way.set(layer); }}, el("bdi", {}, title)) : el("bdi", {class: "mono"}, title),
      el("span", {}, c.why, number(c.share) > 0 ? ` (${Math.round(100 * c.share)} % of the output's error)` : "")));
  }
  function cause() {
    const list = data.culprits || [], most = 3;
    const worst = byOwnError.slice(0, most);
    const flagged = layers.filter((l) => l.bad);
    byId("cause").replaceChildren(
      el("h2", {}, good ? "What erred most" : "Cause"),
      list.length || !good ? el("p", {class: "blame"}, BLAME[data.blame] || data.blame) : "",
      list.length ? el("ol", {class: "culprits bad"}, list.slice(0, most).map(culpritLine)) : "",
      list.length > most ? el("p", {class: "notes"}, `and ${many(list.length - most, "more layer")}, shown in the table`) : "",
      !list.length && worst.length ? el("ol", {class: "culprits"}, worst.map((l) => el("li", {}, el("em", {}, short(l.own, 2)), el("div", {},
        el("button", {type: "button", class: "link", title: l.name, onclick: () => { select(l, "cause"); way.set(l); }}, el("bdi", {}, l.name)), el("span", {}, `${l.op}: ${l.verdict}, ${short(l.ofBound, 2)} of the probable bound`))))) : "",
      !list.length && !worst.length ? el("p", {class: "notes"}, "every layer is exact") : "",
      good && flagged.length ? el("p", {class: "notes"}, `${many(flagged.length, "layer")} with ${[...new Set(flagged.map((l) => l.verdict))].join(", ")} that no output shows: `, flagged.slice(0, 3).flatMap((l) => [chip(l), " "])) : "");
  }

  // ---- fix ----

  const PLANS = ["as declared", "fp32", "bf16", "fp16"];  // that assay build makes

  const inPrecision = data.precision === "as declared" ? "" : ` --precision ${data.precision}`;

  // A command with a button that copies it.
  function command(what, text) {
    const button = el("button", {type: "button", class: "copy", onclick: () => copy(text, button)}, "copy");
    return el("div", {class: "command"}, el("span", {}, what), el("pre", {tabindex: "0"}, text), button);
  }
  const checkWords = () => ["assay", "check", quoted(data.model), ...inPrecision.split(" ").filter(Boolean),
    ...(data.target === "cpu" ? ["--target", "cpu"] : []), ...data.input_files.flatMap((f) => ["--inputs", quoted(f)])];
  // Both fixes, where both were looked for.
  function front(f) {
    if (!f.front) return [];
    const line = (o) => o && o.outputs && o.outputs[0] ? outputLine(o.outputs[0]) : "";
    if (!f.front.differ) return [el("p", {}, `${f.front.best ? "It is within 3 dB of all layers in higher precision" : "All layers in higher precision do not do"}: ${line({outputs: f.front.all})}`)];
    const one = (which) => {
      const o = f.front[which];
      const time = o.estimated_time ? `, an estimated ${o.estimated_time.toFixed(2)} of the time of all` : "";
      return el("li", {}, el("b", {}, which), `${which === f.front.chosen ? " (chosen)" : ""}: ${many(o.nodes.length, "node")}${time}; ${o.verified ? "verified" : "not verified"}: ${line(o)}`);
    };
    return [el("ul", {class: "names"}, ["fewest", "best"].map(one), el("li", {}, el("b", {}, "all"), ` layers in higher precision: ${line({outputs: f.front.all})}`))];
  }
  function precisionFix(f) {
    const model = f.files.find((x) => x.endsWith(".onnx"));
    const result = f.verified.outputs && f.verified.outputs[0];
    const ok = f.verified.verdict === "faithful";
    return [
      el("p", {class: ok ? "good" : "warn"}, `Keep ${many(f.nodes.length, "node")} in higher precision. `,
        el("b", {}, ok ? `Verified by running${result ? `: ${outputLine(result)}` : ""}` : "Not verified: outputs are still unfaithful")),
      ...front(f),
      model ? command("run the fixed model", `assay run ${quoted(model)}${data.input_files.map((x) => ` --inputs ${quoted(x)}`).join("")}`) : null,
      f.command ? command("write it as files", f.command) : null,
      PLANS.includes(data.precision) ? command("build a plan with it", `assay build ${quoted(data.model)} -o model.plan${inPrecision} --layer-precision ${quoted(f.layer_precision)}`) : null,
      command("see it verified", `${checkWords().join(" ")} --layer-precision ${quoted(f.layer_precision)}`),
      ["fp16", "bf16"].includes(data.precision) ? command("TensorRT", `trtexec --onnx=${quoted(data.model)} --${data.precision} ${f.trtexec}`) : null,
      el("details", {}, el("summary", {}, `the ${many(f.nodes.length, "node")}`), el("p", {class: "names"}, f.nodes.join(", "))),
    ];
  }
  function exportFix(f) {
    const ok = f.verified.verdict === "faithful";
    return [
      el("p", {class: ok ? "good" : "warn"}, `${many(f.nodes.length, "node")} repaired${f.files.length ? " in a copy of the model" : ""}. `, el("b", {}, ok ? "Verified: its truth agrees with golden" : "Differences are left")),
      el("ul", {class: "names"}, (data.culprits || []).filter((c) => c.verdict === "export").slice(0, 4).map((c) => el("li", {}, `${c.nodes[0]}: ${c.why}`))),
      f.command ? command("write the repaired model", f.command) : null,
      !f.files.length ? null : command("use the repaired model", `assay check ${quoted(f.files[0])}${data.input_files.map((x) => ` --inputs ${quoted(x)}`).join("")}`),
    ];
  }
  function noFix() {
    if (good) return [
      el("p", {}, "Nothing to fix: every output holds what was asked."),
      !PLANS.includes(data.precision) ? null : command("build a plan", `assay build ${quoted(data.model)} -o model.plan${inPrecision}`),
      data.shares ? null : command("split the error over the layers", `${checkWords().join(" ")} --shares`)];
    const advice = {
      precision: "No fix was found. Try bf16, or fp32.", engine: "More error than rounding can do: this is for the engine's makers. Passes can be switched off one by one with --fused --no-pass.",
      model: "The model leaves its own format or amplifies its inputs: see the layers above.", export: "The export differs from golden; no repair was found. --search-time gives the search longer.",
    };
    return [el("p", {}, advice[data.blame] || "No fix was found."), command("try another precision", checkWords().join(" ").replace(/--precision \S+/, "--precision bf16"))];
  }
  function fix() {
    const f = data.fix;
    byId("fix").replaceChildren(el("h2", {}, good ? "Next" : "Fix"), ...(f ? (f.kind === "export" ? exportFix(f) : precisionFix(f)) : noFix()).filter(Boolean));
  }
  return {start() { bar(); outputs(); cause(); fix(); }};
})();
