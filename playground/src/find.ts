// Finding an event: words, and facets to narrow it down.
import { $, ask, make, price, Refused, when } from "./api";
import type { EventFilter, FacetField, SearchQuery } from "./gql/graphql";
import { SEARCH } from "./operations";

type Facets = NonNullable<NonNullable<SearchQuery["searchEvents"]>["facets"]>;

/** Facets that are offered, in this order, and the field of the filter that each one fills. */
const OFFERED: [FacetField, string, "categories" | "cities" | "saleStatus"][] = [
  ["CATEGORY", "Category", "categories"], ["CITY", "City", "cities"], ["SALE_STATUS", "Sale", "saleStatus"],
];
const SHOWN = 6;
const chosen: { [field: string]: Set<string> } = { categories: new Set(), cities: new Set(), saleStatus: new Set() };
let turns = 0;

/** Looks again for what is in the form. */
async function search(open: (id: string) => void) {
  const turn = ++turns;
  const filter: EventFilter = {};
  for (const [, , field] of OFFERED) if (chosen[field]!.size) (filter as Record<string, string[]>)[field] = [...chosen[field]!];
  try {
    const { searchEvents: found } = await ask(SEARCH, { query: $<HTMLInputElement>("query").value || null, filter });
    if (turn !== turns || !found) return;
    $("found").textContent = found.totalCount === 1 ? "1 event" : `${found.totalCount} events`;
    $("events").replaceChildren(...found.nodes.map((node) => {
      const from = node.priceRange ? `, from ${price(node.priceRange.min)}` : "";
      const place = `${when(node.startsAt, node.timeZone)}, ${node.venue.name}, ${node.venue.city}${from}`;
      const button = make("button", { type: "button" }, node.title, make("small", {}, place));
      button.addEventListener("click", () => open(node.id));
      return make("li", {}, button);
    }));
    drawFacets(found.facets ?? [], () => void search(open));
  } catch (error) {
    if (turn === turns) $("found").textContent = error instanceof Refused ? error.message : "The server does not answer.";
  }
}

function drawFacets(facets: Facets, again: () => void) {
  // What has the focus now has it afterwards too.
  const focused = document.activeElement?.id;
  $("facets").replaceChildren(...OFFERED.flatMap(([name, label, field]) => {
    const picked = chosen[field]!;
    const buckets = facets.find((facet) => facet.field === name)?.buckets ?? [];
    const shown = buckets.filter((bucket, i) => i < SHOWN || picked.has(bucket.value));
    // What was chosen stays there to be given up, even if nothing is found.
    const missing = [...picked].filter((value) => !shown.some((bucket) => bucket.value === value)).map((value) => ({ value, label: value, count: 0 }));
    if (!shown.length && !missing.length) return [];
    return make("fieldset", {}, make("legend", {}, label), ...[...shown, ...missing].map(({ value, label, count }) => {
      const box = make("input", { type: "checkbox", checked: picked.has(value), id: `facet-${name}-${value}` });
      box.addEventListener("change", () => { if (box.checked) picked.add(value); else picked.delete(value); again(); });
      return make("label", {}, box, ` ${label.replaceAll("_", " ").toLowerCase()} (${count})`);
    }));
  }));
  if (focused?.startsWith("facet-")) document.getElementById(focused)?.focus();
}

/** Makes the form work. */
export function finding(open: (id: string) => void) {
  let typing = 0;
  const again = () => void search(open);
  $("search").addEventListener("submit", (submit) => { submit.preventDefault(); again(); });
  $("query").addEventListener("input", () => { clearTimeout(typing); typing = window.setTimeout(again, 150); });
  again();
}
