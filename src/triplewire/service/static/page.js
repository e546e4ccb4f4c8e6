// Lists that look again by themselves, copy buttons, and the live tester, which asks POST /try while a query is typed.

const PAUSE = 200; // milliseconds without a key before a query is tried
const AGAIN = 10_000; // milliseconds until a list looks again
const LONGEST = 60; // characters of a text that become a phrase

document.documentElement.classList.add("scripted");

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const field = button.parentElement.querySelector("input");
  field.select();
  await navigator.clipboard.writeText(field.value);
  const before = [...button.childNodes];
  button.replaceChildren(button.dataset.done);
  setTimeout(() => button.replaceChildren(...before), 1500);
});

for (const list of document.querySelectorAll("[data-again]")) {
  setInterval(async () => {
    if (document.hidden || list.contains(document.activeElement)) return;
    const answer = await fetch(list.dataset.again, { redirect: "error" }).catch(() => null);
    if (answer?.ok) list.innerHTML = await answer.text(); // escaped by the service
  }, AGAIN);
}

const form = document.getElementById("tester");
if (form) tester(form);

function tester(form) {
  const query = form.elements.query;
  const language = form.elements.language;
  const list = document.getElementById("publications");
  let timer = 0;
  let asked = new AbortController();

  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(attempt, PAUSE);
  };
  query.addEventListener("input", later);
  language.addEventListener("change", () => {
    offer();
    attempt();
  });
  document.getElementById("only").addEventListener("change", (event) => list.classList.toggle("only", event.target.checked));
  list.addEventListener("click", (event) => {
    const field = event.target.closest("button.field");
    if (!field) return;
    query.value = withCondition(query.value, language.value, field.dataset);
    query.focus();
    attempt();
  });
  offer();
  attempt();

  function offer() {
    for (const field of list.querySelectorAll("button.field")) field.disabled = !canBeAsked(language.value, field.dataset);
  }

  async function attempt() {
    asked.abort();
    asked = new AbortController();
    if (!query.value.trim()) return show(null, null);
    const body = { query: query.value, language: language.value, prefixes: JSON.parse(form.dataset.prefixes) };
    const headers = { "Content-Type": "application/json", "X-Code": form.dataset.code };
    try {
      const answer = await fetch("/try", { method: "POST", headers, body: JSON.stringify(body), signal: asked.signal });
      const said = await answer.json();
      show(answer.ok ? said : null, answer.ok ? null : said);
    } catch (error) {
      if (error.name !== "AbortError") show(null, { title: error.message });
    }
  }

  function show(found, wrong) {
    const place = wrong?.line ? `${filled(form.dataset.place, wrong)}: ` : "";
    const note = wrong && element("div", "note bad", place + wrong.title, wrong.remedy ? ` ${wrong.remedy}` : "");
    document.getElementById("wrong").replaceChildren(...(note ? [note] : []));
    query.classList.toggle("bad", Boolean(wrong));
    const price = document.getElementById("found");
    price.replaceChildren();
    document.getElementById("warnings").replaceChildren(...(found?.warnings ?? []).map((text) => element("li", "", text)));
    const asks = document.getElementById("asks");
    asks.hidden = !found;
    asks.querySelector("pre").textContent = found?.asks ?? "";
    if (wrong) return; // what was lit stays while a word is half typed
    const matched = new Set(found?.matched ?? []);
    const listed = new Set();
    for (const item of [...list.children]) {
      const number = Number(item.dataset.number);
      item.classList.toggle("lit", matched.has(number));
      if (item.dataset.added && !matched.has(number)) item.remove();
      else listed.add(number);
    }
    for (const each of found?.publications ?? []) {
      if (listed.has(each.number)) continue;
      const item = element("li", "lit", element("details", "", element("summary", "", element("span", "name", each.title))));
      item.dataset.number = each.number;
      item.dataset.added = "1";
      list.append(item);
    }
    if (!found) return;
    const day = found.a_day < 10 ? found.a_day.toFixed(1) : Math.round(found.a_day).toLocaleString();
    const share = `${(100 * found.share).toFixed(1)} %`;
    const counts = { count: found.count.toLocaleString(), of: found.of.toLocaleString(), share, day };
    const text = found.of ? filled(form.dataset.found, counts) : form.dataset.none;
    price.append(element("p", "price", text), strip(found.places, found.of));
    if (found.undecided) price.append(element("p", "hint", filled(form.dataset.undecided, { n: found.undecided })));
  }
}

// Where among the last publications those lie that match: the newest on the left.
function strip(places, of) {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  const set = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
  set(picture, { class: "strip", viewBox: `0 0 ${Math.max(of, 1)} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const place of places) {
    const mark = document.createElementNS(space, "rect");
    set(mark, { x: place, y: 0, width: Math.max(1, of / 200), height: 1 });
    picture.append(mark);
  }
  return picture;
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

function element(name, look, ...children) {
  const made = document.createElement(name);
  if (look) made.className = look;
  made.append(...children);
  return made;
}

// --- a condition made of a field of an example ---------------------------------------------------------------------

function withCondition(query, language, { property, value, kind }) {
  const conditions = { keywords: keyword, gql: tuple, sparql: pattern };
  return (conditions[language] ?? conditions.sparql)(query.trimEnd(), property, value, kind);
}

// Keywords ask for texts and links alone, GQL for no typed value as it is written.
function canBeAsked(language, { property, kind }) {
  if (language === "keywords") return kind === "text" || (kind === "address" && /:(link|url|landingPage)$/.test(property));
  return language === "sparql" || (language === "gql" && kind !== "value");
}

function phrase(value) {
  const short = value.length <= LONGEST ? value : value.slice(0, LONGEST).replace(/\s+\S*$/u, "");
  return `"${short.replace(/["\\…]/g, " ").replace(/\s+/g, " ").trim()}"`;
}

function fresh(query, property) {
  const stem = (property.match(/(\w+)>?$/) ?? ["", "value"])[1].replace(/^\d/, "v$&");
  let name = stem;
  for (let count = 2; new RegExp(`\\?${name}\\b`).test(query); count++) name = `${stem}${count}`;
  return name;
}

function keyword(query, property, value, kind) {
  const field = property.startsWith("<") ? "" : `${kind === "address" ? "link" : property}:`;
  return `${query} ${field}${phrase(value)}`.trim();
}

function pattern(query, property, value, kind) {
  const name = fresh(query, property);
  const test = kind === "number" ? `(?${name} = ${value})` : `ftcontains(?${name}, ${phrase(value)})`;
  const exact = { address: `<${value}>`, value }[kind];
  const line = exact ? `  ?item ${property} ${exact} .` : `  ?item ${property} ?${name} . FILTER ${test}`;
  const end = query.lastIndexOf("}");
  if (end < 0) return `SELECT * WHERE {\n${line}\n}`;
  return `${query.slice(0, end).trimEnd()}\n${line}\n${query.slice(end)}`;
}

function tuple(query, property, value, kind) {
  const name = fresh(query, property);
  const test = kind === "number" ? `?${name} = ${value}` : `?${name} FTCONTAINS ${phrase(value)}`;
  const part = kind === "address" ? `(?item, ${property}, <${value}>)` : `((?item, ${property}, ?${name}) SUCHTHAT (${test}))`;
  return query ? `${query}\nAND ${part}` : `SELECT * WHERE ${part}`;
}
