"use strict";
// The report has what is told in the page; the live page, where that is null, asks for it again and again.
const COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"];
const MOST_RULES = 50, MOST_COLOURED = 10, FEW_POINTS = 40, REFRESH_MS = 5000, LONG_AGO_S = 86400;
const opened = new Set();  // the matches whose events are shown
let told = JSON.parse(document.getElementById("told").textContent);

const byId = id => document.getElementById(id);
const count = number => number === null ? "" : number.toLocaleString("en");
// plotly reads some tags in its texts; all other texts of the page become text alone
const asText = text => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function element(name, content, kind) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...(Array.isArray(content) ? content : [content === null || content === undefined ? "" : content]));
  return made;
}

function fill(id, heads, lines) {
  const table = byId(id);
  table.replaceChildren();
  if (!lines.length) return;
  table.append(element("tr", heads.map(([text, kind]) => element("th", text, kind))));
  lines.forEach(cells => table.append(cells instanceof Element ? cells : element("tr", cells.map((cell, place) =>
    element("td", typeof cell === "number" ? count(cell) : cell, heads[place][1])))));
}

function pairs(id, list) {
  byId(id).replaceChildren(...list.map(([name, text]) => element("div", [element("dt", name), element("dd", text)])));
}

function plot(id, title, unit, traces, more) {
  // a refresh leaves what was zoomed, and which curves a click on the legend has shown or hidden, by their names
  Plotly.react(id, traces.map(trace => ({ ...trace, uid: trace.name })), {
    uirevision: "as left", title: { text: title, font: { size: 14 }, x: 0.01, xanchor: "left", y: 0.97 }, margin: { l: 60, r: 10, t: 34, b: 30 },
    xaxis: { type: "date" }, yaxis: { title: { text: unit }, rangemode: "tozero", fixedrange: true },
    legend: { orientation: "h", x: 1, xanchor: "right", y: 1.02, yanchor: "bottom" }, hovermode: "x unified",
    showlegend: traces.length > 1, ...more,
  }, { responsive: true, displaylogo: false, displayModeBar: false });
}

function curves(id, title, unit, named) {
  const x = told.batches.at;
  plot(id, title, unit, named.map(([name, y, colour, visible]) => ({ name: name, x: x, y: y, type: "scatter", visible: visible ?? true,
    mode: x.length > FEW_POINTS ? "lines" : "lines+markers", line: { color: colour, width: 1.5 } })));
}

// seconds from the newest event of all batches so far to the end of each; they grow while nothing comes
function behindTheClock() {
  let newest = null;
  return told.batches.newest.map((time, place) => {
    newest = time === null ? newest : Math.max(newest ?? time, time);
    return newest === null ? null : (told.batches.at[place] - newest) / 1000;
  });
}

function drawBatches() {
  const of = told.batches, per = (one, other) => one.map((value, at) => other[at] ? value / other[at] : null);
  const less = (values, by) => values.map(value => value === null ? null : value / by);
  curves("speed", "Records read", "records a second", [["records", per(of.records, of.seconds), COLOURS[0]]]);
  curves("seconds", "Batches", "seconds", [["batch", of.batch_seconds, COLOURS[1]]]);
  const lag = behindTheClock(), isOld = lag.every(seconds => seconds === null || seconds > LONG_AGO_S);
  // events of long ago would hide the frontier; a click shows them
  curves("lag", "Behind", "seconds", [["newest event behind the clock", lag, COLOURS[1], isOld ? "legendonly" : true], ["frontier behind the newest event", less(of.lag_ms, 1e3), COLOURS[3]]]);
  curves("kept", "Events kept", "events", [["wait for the frontier", of.pending, COLOURS[4]], ["carried", of.carry, COLOURS[2]], ["open selections", of.open, COLOURS[5]]]);
  curves("bytes", "State", "MB", [["state", less(of.state_bytes, 1e6), COLOURS[6]]]);
  curves("refused-records", "Set aside", "events, records", [["late", of.late, COLOURS[1]], ["quarantined", of.quarantined, COLOURS[7]], ["repeats", of.repeats, COLOURS[8]]]);
}

function wantedRules() {
  const text = byId("wanted").value.toLowerCase(), has = value => value.toLowerCase().includes(text);
  return told.rules.names.map((name, at) => at).filter(at => has(told.rules.names[at]) || has(told.rules.about[at]));
}

function drawRules(shown) {
  const rules = told.rules, drawn = shown.filter(at => rules.matches[at]), first = drawn.slice(0, MOST_COLOURED), rest = drawn.slice(MOST_COLOURED);
  const width = rules.begins.length > 1 ? 0.95 * (rules.begins[1] - rules.begins[0]) : undefined;  // a bar begins where its time does
  const bar = (name, y, colour) => ({ type: "bar", name: asText(name), x: rules.begins, y: y, offset: 0, width: width, marker: { color: colour } });
  const traces = first.map((at, place) => bar(rules.names[at], rules.series[at], COLOURS[place]));
  if (rest.length) {
    const sum = rules.begins.map((begin, place) => rest.reduce((all, at) => all + rules.series[at][place], 0));
    // they would hide the first ones; a click shows them
    traces.push({ ...bar(`${count(rest.length)} others`, sum, "#ccc"), visible: "legendonly" });
  }
  const at = told.batches.at, ends = rules.begins.length ? [Math.min(at[0], rules.begins[0]), Math.max(at[at.length - 1], rules.begins[rules.begins.length - 1] + (width ?? 0))] : at;
  // the time of all curves, so that one sees who finds nothing any more
  const range = ends.length > 1 && ends[0] < ends[ends.length - 1] ? [ends[0], ends[ends.length - 1]] : undefined;
  if (at.length) plot("matches", "Matches by rule", "matches", traces, { barmode: "stack", hovermode: "closest", bargap: 0.05, legend: {}, showlegend: true, xaxis: { type: "date", tickangle: 0, nticks: 6, range: range } });
  fill("rules", [["rule", "plain"], ["matches", "number"], ["last written", "plain"], ["description"]], shown.slice(0, MOST_RULES).map(at =>
    [rules.names[at], rules.matches[at], rules.last_written[at], rules.about[at]]));
  const left = shown.length - MOST_RULES;
  byId("shown-rules").textContent = `${count(shown.length)} of ${count(rules.names.length)}` + (left > 0 ? `, of which the ${MOST_RULES} with the most matches are listed` : "");
}

function drawLatest() {
  const text = byId("wanted").value.toLowerCase(), names = new Set(wantedRules().map(at => told.rules.names[at])), lines = [];
  const heads = [["rule", "plain"], ["matched at", "plain"], ["key"], ["fields"], ["events", "plain"]];
  told.newest.filter(match => names.has(match.rule) || String(match.key || "").toLowerCase().includes(text)).forEach(match => {
    const id = `${match.rule} ${match.out_seq}`, button = element("button", `${count(match.number)} shown`);
    const below = element("tr", [element("td", "")]);
    below.firstChild.colSpan = heads.length;
    const show = () => {
      button.textContent = opened.has(id) ? "hide" : match.number ? `show ${count(match.number)}` : "why";
      below.hidden = !opened.has(id);
      below.firstChild.replaceChildren(...(opened.has(id) ? eventsOf(match) : []));
    };
    button.addEventListener("click", () => { if (!opened.delete(id)) opened.add(id); show(); });
    show();
    lines.push(element("tr", [match.rule, match.matched_at, match.key, match.fields, button].map((cell, at) => element("td", cell, heads[at][1]))), below);
  });
  fill("latest", heads, lines);
  byId("no-latest").textContent = !told.newest.length ? "There is no match yet."
    : lines.length ? "" : `None of the latest ${count(told.newest.length)} matches fits. Of one rule: ${told.ask} "SELECT * FROM RULE ORDER BY out_seq DESC LIMIT 20"`;
}

function eventsOf(match) {
  const rows = match.events.map(event => element("tr", [event.component, event.event_time, event.seq, event.source, event.offset].map(cell => element("td", cell))));
  const head = element("tr", ["component", "event time", "seq", "source", "offset"].map(name => element("th", name)));
  const left = match.number - match.events.length;
  const said = [`out_seq ${match.out_seq}, selection ${match.selection_id}, opened at ${match.opened_at}` + (left > 0 ? `; ${count(left)} more events` : "")];
  if (!match.events.length) said.push(". The rule tells no events of a match.");
  if (match.why) said.push(". Why the last of them is part of it: ", element("code", match.why));
  return [element("p", said, "faint"), ...(rows.length ? [element("table", [head, ...rows])] : [])];
}

function drawTables() {
  fill("late-sources", [["source"], ["late events", "number"], ["most, seconds", "number"], ["last event time", "plain"]],
    told.late.by_source.map(row => [row.source, row.events, row.most_seconds, row.last]));
  fill("late-latest", [["event time", "plain"], ["reason"], ["source"], ["offset", "number"], ["event"]],
    told.late.newest.map(row => [row.event_time, row.reason, row.source, String(row.offset), row.event]));
  byId("no-late").textContent = told.late.newest.length ? "" : "None.";
  fill("reasons", [["kind", "plain"], ["rows", "number"], ["rule", "plain"], ["reason"], ["one is at"]],
    told.reasons.map(row => [row.kind, row.rows, row.rule, row.reason, row.at]));
  byId("no-reasons").textContent = told.reasons.length ? "" : "None.";
  fill("alerts", [["target", "plain"], ["wait", "number"], ["told"]], told.alerts.map(one => [one.target, one.rows_waiting, one.said]));
  fill("refused", [["refused at", "plain"], ["target", "plain"], ["id"], ["status", "plain"], ["reply"]],
    told.refused.map(row => [row.refused_at, row.target, row.id, row.status, row.reply]));
  byId("no-alerts").textContent = told.alerts.length || told.refused.length ? "" : "No target is known.";
  fill("sources", [["source"], ["reached", "plain"], ["behind the fastest", "plain"], [""]],
    told.sources.map(row => [row.source, row.reached === null ? element("span", "never heard of", "wrong") : row.reached, row.behind, row.idle ? "left out" : ""]));
  byId("of-sources").hidden = !told.sources.length;
}

function drawState() {
  byId("state").textContent = told.state.word;
  byId("state").className = told.state.word;
  byId("told-state").textContent = told.state.told;
  byId("at").textContent = `as of ${told.at}`;
  byId("troubles").replaceChildren(...told.troubles.map(sentence => element("li", sentence)));
  byId("wrong").textContent = told.wrong || "";
  byId("ask").textContent = `${told.ask} "SELECT * FROM matches LIMIT 20"`;
  pairs("figures", told.figures);
  pairs("about", told.about);
}

function drawFiltered() {
  drawRules(wantedRules());
  drawLatest();
}

function draw() {
  if (!told) return;
  document.title = told.name;
  document.querySelector("h1").textContent = told.name;
  drawState();
  byId("plots").hidden = !told.batches.at.length;
  if (told.batches.at.length) drawBatches();
  drawFiltered();
  drawTables();
  document.body.dataset.drawn = told.rules.names.length;
}

async function ask() {
  if (!document.hidden) {
    try {
      const answer = await fetch("told.json", { cache: "no-store" });
      const found = await answer.json();
      byId("silent").textContent = answer.ok ? "" : found.error;
      if (answer.ok) {
        told = found;
        draw();
      }
    } catch (error) {
      byId("silent").textContent = "The job does not answer: it has ended, or the connection has.";
    }
  }
  setTimeout(ask, REFRESH_MS);
}

byId("wanted").addEventListener("input", () => { if (told) drawFiltered(); });
if (told) draw(); else ask();
