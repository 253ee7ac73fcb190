// @ts-check
import { make, markdown } from "./markdown.js";
import { parseYAML } from "./yaml.js";

// The page of the API's documentation. It makes everything of openapi.yaml, the guides and the table of problems, which this
// service has, so it always describes this service. The fragment of its address selects the page:
//
//   #GET /v1/recordings/{id}      an operation       #guide/api, #guide/api/tokens      a guide, a heading of it
//   #problem/not_found            a problem          #                                  the introduction

const base = new URL("..", import.meta.url).href;
const guides = ["api", "embedding", "labels", "formats", "clients", "operating", "proxies", "cluster", "security", "fences", "how-it-works", "benchmarks"];
const methods = ["get", "head", "post", "put", "patch", "delete", "options"];
/** Responses up to this many characters are shown. */
const mostShown = 20_000;

/** @typedef {{ name: string, title: string, group: string, text: string, method?: string, show: () => Promise<Node[]> | Node[] }} Entry */

/** @type {any} */
let api;
const contents = /** @type {HTMLElement} */ (document.querySelector("#contents")), main = /** @type {HTMLElement} */ (document.querySelector("main"));
const search = /** @type {HTMLInputElement} */ (document.querySelector("#search")), none = /** @type {HTMLElement} */ (document.querySelector("#none"));

/** Where the links of a guide lead. */
const link = (/** @type {string} */ guide) => (/** @type {string} */ target) => {
  const [path, heading] = target.split("#"), name = /^(?:docs\/|\.\/)?([\w-]+)\.md$/.exec(path)?.[1];
  if (/^https?:/.test(target)) return target;
  if (!path) return `#guide/${guide}/${heading}`;
  if (name && guides.includes(name)) return `#guide/${name}${heading ? `/${heading}` : ""}`;
  return path.endsWith("openapi.yaml") ? base + "openapi.yaml" : null;
};

/** Follows references. */
function resolved(/** @type {any} */ value) {
  for (let depth = 0; value?.$ref && depth < 9; depth++) value = value.$ref.slice(2).split("/").reduce((/** @type {any} */ at, /** @type {string} */ name) => at?.[name], api);
  return value ?? {};
}

const paragraphs = (/** @type {string | undefined} */ text) => text ? markdown(text, link("api")) : [];

// MARK: Schemas

function typeOf(/** @type {any} */ given) {
  const schema = resolved(given), types = [schema.type ?? (schema.properties ? "object" : "")].flat().filter(Boolean);
  if (schema.oneOf || schema.anyOf) return [...new Set((schema.oneOf ?? schema.anyOf).map(typeOf))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((/** @type {any} */ value) => JSON.stringify(value)).join(", ");
  if (types[0] === "array") return `list of ${typeOf(schema.items)}`;
  const range = ["minimum", "maximum"].map(name => schema[name]), bounds = range.some(value => value !== undefined) ? ` ${range[0] ?? "…"} … ${range[1] ?? "…"}` : "";
  return `${types.join(" or ")}${bounds}${schema.format ? ` (${schema.format})` : ""}` || "any";
}

/** The members of an object, those of lists and alternatives included. */
function members(/** @type {any} */ given, depth = 0) {
  const schema = resolved(given), inner = schema.items ?? null, nested = [schema, ...(schema.allOf ?? []), ...(schema.oneOf ?? []), ...(schema.anyOf ?? [])];
  const list = make("ul", { class: "members" });
  if (depth < 6) {
    for (const part of nested.map(resolved)) {
      for (const [name, member] of Object.entries(part.properties ?? {})) {
        const own = resolved(member), isRequired = part.required?.includes(name), fallback = own.default === undefined ? "" : `, default ${JSON.stringify(own.default)}`;
        list.append(make("li", {}, make("code", {}, name), " ", make("span", { class: "quiet" }, `${typeOf(member)}${isRequired ? "" : ", optional"}${fallback}`),
          ...paragraphs(member.description ?? own.description), ...below(member, depth)));
      }
    }
    if (inner) return members(inner, depth + 1);
  }
  return list;
}
function below(/** @type {any} */ member, /** @type {number} */ depth) {
  const list = members(member, depth + 1);
  return list.childElementCount ? [make("details", {}, make("summary", { class: "quiet" }, "members"), list)] : [];
}

/** A value that fits, of the examples that the document gives. */
function example(/** @type {any} */ given, depth = 0) {
  const schema = resolved(given);
  if (given?.example !== undefined || schema.example !== undefined) return given.example ?? schema.example;
  if (schema.examples?.length) return schema.examples[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const first = (schema.oneOf ?? schema.anyOf ?? schema.allOf)?.[0];
  if (first && depth < 6) return example(first, depth + 1);
  const type = [schema.type].flat()[0];
  if (type === "array") return depth < 6 ? [example(schema.items, depth + 1)] : [];
  if (schema.properties && depth < 6) return Object.fromEntries(Object.entries(schema.properties).filter(([name]) => schema.required?.includes(name)).map(([name, member]) => [name, example(member, depth + 1)]));
  return type === "integer" || type === "number" ? schema.minimum ?? 1 : type === "boolean" ? true : type === "object" ? {} : "…";
}

// MARK: Operations

/** @param {string} path @param {string} method @param {any} item @param {any} operation */
function showOperation(path, method, item, operation) {
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolved), table = make("tbody");
  for (const parameter of parameters) {
    table.append(make("tr", {}, make("td", {}, make("code", {}, parameter.name), make("br"), make("span", { class: "quiet" }, `${parameter.in}${parameter.required ? ", required" : ""}`)),
      make("td", {}, typeOf(parameter.schema), ...parameter.schema && resolved(parameter.schema).default !== undefined ? [make("br"), make("span", { class: "quiet" }, `default ${JSON.stringify(resolved(parameter.schema).default)}`)] : []), make("td", {}, ...paragraphs(parameter.description))));
  }
  const made = [make("h1", {}, make("span", { class: "method" }, method.toUpperCase()), path), ...paragraphs(`**${operation.summary ?? ""}**`), ...paragraphs(operation.description)];
  const head = (/** @type {string[]} */ ...names) => make("thead", {}, make("tr", {}, ...names.map(name => make("th", {}, name))));
  made.push(make("h2", {}, "Example"), make("pre", { tabindex: "0" }, make("code", {}, curl(path, method, parameters, operation))));
  if (method === "get") made.push(...tryIt(path, parameters, operation));
  if (parameters.length) made.push(make("h2", {}, "Parameters"), make("div", { class: "table", tabindex: "0" }, make("table", {}, head("name", "value", "meaning"), table)));
  for (const [type, media] of Object.entries(resolved(operation.requestBody).content ?? {})) {
    made.push(make("h2", {}, "Body: ", make("code", {}, type)), ...paragraphs(resolved(operation.requestBody).description), members(media.schema));
  }
  made.push(make("h2", {}, "Responses"));
  for (const [status, given] of Object.entries(operation.responses ?? {})) {
    const response = resolved(given), types = Object.keys(response.content ?? {}), json = Object.entries(response.content ?? {}).find(([type]) => type.includes("json"))?.[1];
    made.push(make("h3", {}, status === "default" ? "others" : status), ...paragraphs(response.description));
    if (types.length) made.push(make("p", { class: "quiet" }, types.join(", ")));
    if (response.headers) made.push(make("p", { class: "quiet" }, `Fields: ${Object.keys(response.headers).join(", ")}`));
    if (json && status < "300") made.push(members(json.schema));
  }
  return made;
}

const needsKey = (/** @type {any} */ operation) => (operation.security ?? api.security ?? []).some((/** @type {any} */ way) => way.key);

/** The call as a command for this service. */
function curl(/** @type {string} */ path, /** @type {string} */ method, /** @type {any[]} */ parameters, /** @type {any} */ operation) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => `$${name.toUpperCase()}`), query = parameters.filter(({ in: place, required }) => place === "query" && required);
  const url = `${base.replace(/\/$/, "")}${filled}${query.length ? `?${query.map(({ name, example: value }) => `${name}=${encodeURIComponent(value ?? "…")}`).join("&")}` : ""}`;
  const parts = [`curl ${{ get: "", head: "--head ", post: "" }[method] ?? `-X ${method.toUpperCase()} `}"${url}"`];
  if (path.startsWith("/v1/") && needsKey(operation)) parts.push('-H "Authorization: Bearer $KEY"');
  for (const { name, in: place, required, example: value, schema } of parameters) if (place === "header" && required) parts.push(`-H "${name}: ${value ?? example(schema)}"`);
  const [type, media] = Object.entries(resolved(operation.requestBody).content ?? {})[0] ?? [];
  if (type?.includes("json")) parts.push(`-H "Content-Type: ${type}"`, `-d '${JSON.stringify(media.example ?? Object.values(media.examples ?? {}).map(given => resolved(given).value)[0] ?? example(media.schema))}'`);
  else if (type) parts.push("--data-binary @file");
  else if (method === "post") parts.push("-X POST");
  return parts.join(" \\\n  ");
}

/** A form that sends the request from this page. */
function tryIt(/** @type {string} */ path, /** @type {any[]} */ parameters, /** @type {any} */ operation) {
  const form = make("form", { class: "try" }), answer = make("div", { role: "status" }), streams = Object.keys(resolved(operation.responses?.["200"]).content ?? {}).includes("text/event-stream");
  if (streams) return [];
  const field = (/** @type {string} */ label, /** @type {Record<string, string>} */ fields) => {
    const input = make("input", { autocomplete: "off", ...fields });
    form.append(make("label", {}, label, input));
    return /** @type {HTMLInputElement} */ (input);
  };
  const key = path.startsWith("/v1/") ? field("key, if the service has keys", { type: "password", name: "key", value: keptKey() }) : null;
  const inputs = parameters.filter(({ name, in: place }) => place !== "header" && name !== "token").map(parameter => ({ parameter, input: field(`${parameter.name}${parameter.required ? " (required)" : ""}`,
    { name: parameter.name, ...parameter.required ? { required: "" } : {}, placeholder: String(resolved(parameter.schema).default ?? "") }) }));
  form.append(make("button", {}, "Send"));
  form.addEventListener("submit", async event => {
    event.preventDefault();
    let target = path;
    const query = new URLSearchParams();
    for (const { parameter: { name, in: place }, input: { value } } of inputs) {
      if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(value));
      else if (value) query.append(name, value);
    }
    const address = `${base.replace(/\/$/, "")}${target}${query.size ? `?${query}` : ""}`;
    answer.replaceChildren(make("p", {}, "…"));
    try {
      const began = performance.now(), response = await fetch(address, { headers: key?.value ? { Authorization: `Bearer ${key.value}` } : {} });
      answer.replaceChildren(...await shown(response, address, performance.now() - began));
    } catch (error) { answer.replaceChildren(make("p", {}, `No answer: ${/** @type {Error} */ (error).message}`)); }
  });
  return [make("h2", {}, "Try it"), form, answer];
}

/** The key that the viewer in this tab was given. */
function keptKey() {
  try { return sessionStorage.getItem(`stillwave key ${new URL(base).pathname}`) ?? ""; } catch { return ""; }
}

async function shown(/** @type {Response} */ response, /** @type {string} */ address, /** @type {number} */ milliseconds) {
  const type = response.headers.get("Content-Type") ?? "", blob = await response.blob(), fields = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const made = [make("p", {}, make("strong", {}, `${response.status} ${response.statusText}`), ` ${type}, ${blob.size.toLocaleString("en")} bytes, ${Math.round(milliseconds)} ms`), make("p", {}, make("code", {}, address)),
    make("details", {}, make("summary", {}, "Fields"), make("pre", { tabindex: "0" }, fields))];
  if (type.startsWith("image/")) made.push(make("img", { src: URL.createObjectURL(blob), alt: "The picture" }));
  else if (/json|text|yaml|xml/.test(type)) {
    let text = await blob.text();
    try { if (type.includes("json")) text = JSON.stringify(JSON.parse(text), null, 1); } catch { /* as it is */ }
    made.push(make("pre", { tabindex: "0" }, text.length > mostShown ? `${text.slice(0, mostShown)}\n… ${text.length - mostShown} more characters` : text));
  }
  return made;
}

// MARK: Contents

const text = async (/** @type {string} */ path) => {
  const response = await fetch(base + path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.text();
};

/** @returns {Entry[]} */
function operations() {
  const made = [];
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of methods.filter(name => item[name])) {
      const operation = item[method], parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(given => resolved(given).name);
      made.push({
        name: `${method.toUpperCase()} ${path}`, title: path, method, group: operation.tags?.[0] ?? "Others",
        text: [path, method, operation.summary, operation.description, ...parameters].join(" "), show: () => showOperation(path, method, item, operation),
      });
    }
  }
  return made;
}

/** Each problem is a block of four lines: see problems.txt. */
function problems(/** @type {string} */ source) {
  return source.trim().split(/\n\n+/).map(block => {
    const [head, meaning, remedy] = block.split("\n"), [, code, status, title] = /^(\w+) (\d+): (.*)$/.exec(head) ?? ["", head, "", head];
    return /** @type {Entry} */ ({
      name: `problem/${code}`, title: code, group: "Problems", text: block,
      show: () => [make("h1", {}, title), make("p", {}, "The code of this problem is ", make("code", {}, code), `, its status ${status}.`), make("p", {}, meaning), make("h2", {}, "What to do"), make("p", {}, remedy)],
    });
  });
}

/** @param {string[]} sources */
const guideEntries = sources => guides.map((name, k) => /** @type {Entry} */ ({
  name: `guide/${name}`, title: /^# (.*)/m.exec(sources[k])?.[1] ?? name, group: "Guides", text: sources[k], show: () => markdown(sources[k], link(name)),
}));

/** @param {Entry[]} entries */
function list(entries) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter(({ text, title }) => words.every(word => (text + " " + title).toLowerCase().includes(word)));
  contents.replaceChildren(...[...new Set(found.map(({ group }) => group))].flatMap(group => [
    make("h2", {}, group), ...found.filter(entry => entry.group === group).map(({ name, title, method }) =>
      make("a", { href: `#${encodeURI(name)}`, ...name === current().name ? { "aria-current": "page" } : {} }, ...method ? [make("span", { class: "method" }, method.toUpperCase())] : [], title))]));
  none.textContent = found.length ? "" : "Nothing has all these words.";
}

function current() {
  const [first, second, heading] = decodeURI(location.hash.slice(1)).split("/");
  return first === "guide" ? { name: `${first}/${second}`, heading } : { name: decodeURI(location.hash.slice(1)), heading: "" };
}

async function show(/** @type {Entry[]} */ entries, isFirst = false) {
  const { name, heading } = current(), entry = entries.find(entry => entry.name === name);
  main.replaceChildren(...entry ? await entry.show() : [make("h1", {}, `${api.info.title} ${api.info.version}`), make("p", {}, `${api.info.summary} This service is at `, make("code", {}, base), "; ", make("a", { href: base + "openapi.yaml" }, "openapi.yaml"), " is for programs."), ...paragraphs(api.info.description)]);
  document.title = `${entry ? entry.method ? entry.name : entry.title : "The API"} – Stillwave`;
  list(entries);
  if (isFirst) return;
  const target = heading && document.getElementById(heading);
  if (target) target.scrollIntoView();
  else scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

try {
  const [yaml, codes, ...sources] = await Promise.all([text("openapi.yaml"), text("viewer/problems.txt"), ...guides.map(name => text(`viewer/${name}.md`))]);
  api = parseYAML(yaml);
  const entries = [...operations(), ...guideEntries(sources), ...problems(codes)];
  search.addEventListener("input", () => list(entries));
  addEventListener("hashchange", () => void show(entries));
  await show(entries, true);
} catch (error) { main.replaceChildren(make("p", { role: "alert" }, `The documentation could not be read: ${/** @type {Error} */ (error).message}`)); }
