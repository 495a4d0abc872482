"use strict";

const SHOWN_ROWS = 50;
const OUTSIDER = 0.99;
const $ = (id) => document.getElementById(id);
let model = null;
let token = "";

// Text only ever becomes text: nothing that the service or a file says is read as HTML.
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const percent = (value) => {
  const rounded = (100 * value).toFixed(0);
  return (rounded === "0" || rounded === "100" ? (100 * value).toFixed(1) : rounded) + "\u00a0%"; // never parted from its sign
};

async function call(path, options = {}) {
  const headers = { ...(options.headers || {}), ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("The service cannot be reached. Is it still running?");
  }
  let body = {};
  try {
    body = await response.json();
  } catch { /* the status says enough */ }
  if (!response.ok) {
    const error = new Error(typeof body.detail === "string" ? body.detail : `The service answered ${response.status}.`);
    error.status = response.status;
    throw error;
  }
  return body;
}

async function start() {
  try {
    model = await call("model");
  } catch (error) {
    $("about").textContent = error.status === 401 ? "" : error.message;
    $("token-form").hidden = error.status !== 401;
    if (token) showError(error);
    return;
  }
  $("token-form").hidden = true;
  $("links").hidden = Boolean(token); // a browser would ask for them without the token
  $("answer").hidden = true;
  $("title").textContent = model.name;
  document.title = `${model.name} · calibayes`;
  $("about").textContent = `Predicts “${model.target}”: ${few(model.classes)}, and says how sure it is.`;
  $("statements").replaceChildren(...model.statements.map((text) => element("li", { textContent: text })));
  $("promises").hidden = !model.statements.length;
  const images = model.kind === "images";
  $("typed").hidden = images;
  $("file").accept = images ? ".png,.jpg,.jpeg" : ".csv,.tsv,.txt,.jsonl,.ndjson";
  if (images) {
    $("file-title").textContent = "Drop an image";
    $("drop-text").textContent = "Drop a PNG or JPEG image here, or tap to choose one";
  } else {
    $("cells").replaceChildren(...model.columns.map(field));
  }
  $("ask").hidden = false;
}

const few = (names) => names.slice(0, 6).join(", ") + (names.length > 6 ? `, … (${names.length} in all)` : "");

function field(column, place) {
  const id = `cell-${place}`;
  const input = element(column.kind === "text" ? "textarea" : "input", { id, placeholder: column.values ? few(column.values) : column.hint });
  input.autocomplete = "off";
  if (column.kind === "number") input.inputMode = "decimal";
  const made = element("div", { className: column.kind === "text" ? "wide" : "" },
    element("label", { htmlFor: id, textContent: column.name }), input);
  if (column.values) {
    const list = element("datalist", { id: `${id}-values` }, ...column.values.map((value) => element("option", { value })));
    input.setAttribute("list", list.id);
    made.append(list);
  }
  return made;
}

async function predictRow(event) {
  event.preventDefault();
  const row = Object.fromEntries(model.columns.map((column, place) => [column.name, $(`cell-${place}`).value.trim() || null]));
  if (Object.values(row).every((cell) => cell === null)) {
    showError(new Error("Fill in at least one field: an empty row says nothing."));
    return;
  }
  await show(() => call("predict", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ rows: [row] }),
  }));
}

async function predictFile(file) {
  if (!file) return;
  if (file.size > model.limits.bytes) {
    showError(new Error(`“${file.name}” is too large: at most ${(model.limits.bytes / 1e6).toFixed(0)} MB are taken.`));
    return;
  }
  const form = new FormData();
  form.append("file", file, file.name);
  await show(() => call("predict", { method: "POST", body: form }), file.name);
}

async function show(ask, name) {
  const buttons = document.querySelectorAll("button");
  buttons.forEach((button) => { button.disabled = true; });
  try {
    const answer = await ask();
    const parts = answer.rows.length === 1 ? oneRow(answer.rows[0]) : manyRows(answer.rows, name);
    parts.push(...answer.notes.map((note) => element("p", { className: "hint", textContent: note })));
    $("answer").replaceChildren(...parts);
  } catch (error) {
    showError(error);
  } finally {
    buttons.forEach((button) => { button.disabled = false; });
    $("answer").hidden = false;
    $("answer").scrollIntoView({ block: "nearest" });
  }
}

function showError(error) {
  $("answer").replaceChildren(element("p", { className: "bad", textContent: error.message }));
  $("answer").hidden = false;
}

function oneRow(row) {
  const ranked = Object.entries(row.probabilities).sort((one, other) => other[1] - one[1]);
  const parts = [];
  if (row.abstain) {
    parts.push(element("p", { className: "decision", textContent: "No decision" }),
      element("p", { className: "sure", textContent: `Most likely ${ranked[0][0]}, with ${percent(row.confidence)}` }),
      element("p", { className: "stop", textContent: row.reason }));
  } else {
    parts.push(element("p", { className: "decision", textContent: row.decision }),
      element("p", { className: "sure", textContent: `${percent(row.confidence)} sure` }));
  }
  if (row.outsider !== null && row.outsider > OUTSIDER) {
    parts.push(element("p", { className: "stop",
      textContent: `This row is unlike the known ones: ${percent(row.outsider)} of them look less unusual. Do not rely on the answer.` }));
  }
  parts.push(bars(ranked.slice(0, 10), row.set));
  const facts = [];
  if (row.set) facts.push(row.set.length ? `The set with the guaranteed coverage (in bold): ${row.set.join(", ")}` : "The set with the guaranteed coverage is empty: no class fits.");
  if (row.outsider !== null && row.outsider <= OUTSIDER) facts.push(`Its outsider score is above that of ${percent(row.outsider)} of the known rows`);
  const lack = row.epistemic + row.aleatoric > 0 ? row.epistemic / (row.epistemic + row.aleatoric) : 0;
  facts.push(`${percent(lack)} of its uncertainty is for lack of data, the rest because the classes overlap`);
  parts.push(element("ul", { className: "facts" }, ...facts.map((text) => element("li", { textContent: text }))));
  return parts;
}

function bars(ranked, set) {
  return element("ul", { className: "bars" }, ...ranked.map(([name, value]) => {
    const fill = element("span", { className: "fill" });
    fill.style.width = `${100 * value}%`;
    return element("li", { className: set && set.includes(name) ? "in-set" : "" },
      element("span", { className: "name", textContent: name }),
      element("span", { className: "track", ariaHidden: "true" }, fill),
      element("span", { className: "number", textContent: percent(value) }));
  }));
}

function manyRows(rows, name) {
  const abstained = rows.filter((row) => row.abstain).length;
  const outsiders = rows.filter((row) => row.outsider !== null && row.outsider > OUTSIDER).length;
  const sure = rows.reduce((sum, row) => sum + row.confidence, 0) / rows.length;
  const count = (number, what) => `${number.toLocaleString("en")} ${what}`;
  const facts = [`${percent(sure)} sure on average`];
  if (model.abstains) facts.push(`${count(abstained, "without a decision")}`);
  if (rows[0].outsider !== null) facts.push(`${count(outsiders, "unlike the known rows")}`);
  const sets = rows[0].set !== null;
  const head = ["row", "decision", "confidence", ...(sets ? ["set"] : []), ...(rows[0].outsider !== null ? ["outsider"] : []), ...(abstained ? ["why there is none"] : [])];
  const line = (row, place) => element("tr", {}, ...[
    String(place + 1), row.decision ?? "–", percent(row.confidence), ...(sets ? [row.set.join(", ")] : []),
    ...(row.outsider !== null ? [row.outsider.toFixed(2)] : []),
  ].map((text) => element("td", { textContent: text })), ...(abstained ? [element("td", { className: "why", textContent: row.reason ?? "" })] : []));
  const save = element("button", { className: "plain", textContent: "Download all as CSV", onclick: () => download(rows) });
  return [
    element("p", { className: "decision", textContent: count(rows.length, "rows") + (name ? ` of ${name}` : "") }),
    element("p", { className: "sure", textContent: facts.join(" · ") }),
    save,
    element("div", { className: "scroll", tabIndex: 0 }, element("table", {},
      element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { textContent: text })))),
      element("tbody", {}, ...rows.slice(0, SHOWN_ROWS).map(line)))),
    ...(rows.length > SHOWN_ROWS ? [element("p", { className: "hint", textContent: `The first ${SHOWN_ROWS} rows.` })] : []),
  ];
}

function download(rows) {
  const quoted = (value) => {
    const text = value === null ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const joined = (set) => set.map((name) => name.replaceAll("\\", "\\\\").replaceAll("|", "\\|")).join("|");
  const columns = [
    ["decision", (row) => row.decision], ...(model.abstains ? [["abstain", (row) => row.abstain]] : []),
    ...(rows[0].set ? [["set", (row) => joined(row.set)]] : []),
    ...model.classes.map((name) => [`p_${name}`, (row) => row.probabilities[name]]),
    ...["confidence", "epistemic", "aleatoric"].map((name) => [name, (row) => row[name]]),
    ...(rows[0].outsider !== null ? [["outsider", (row) => row.outsider]] : []),
  ];
  const lines = [columns.map(([name]) => quoted(name)), ...rows.map((row) => columns.map(([, value]) => quoted(value(row))))];
  const address = URL.createObjectURL(new Blob([lines.map((cells) => cells.join(",") + "\r\n").join("")], { type: "text/csv" }));
  element("a", { href: address, download: "predictions.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

$("row-form").addEventListener("submit", predictRow);
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  start();
});
$("file").addEventListener("change", (event) => predictFile(event.target.files[0]).then(() => { event.target.value = ""; }));
for (const kind of ["dragenter", "dragover"]) {
  $("drop").addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) $("drop").addEventListener(kind, () => $("drop").classList.remove("over"));
$("drop").addEventListener("drop", (event) => {
  event.preventDefault();
  predictFile(event.dataTransfer.files[0]);
});
start();
