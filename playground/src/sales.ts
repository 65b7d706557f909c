// How an event sells, for its organizer: by section and by hour, as small charts that follow the map.
import { $, ask, make, price, settings, svg } from "./api";
import type { SalesQuery } from "./gql/graphql";
import { SALES } from "./operations";

type Sales = NonNullable<NonNullable<SalesQuery["event"]>["sales"]>;
type Bar = { name: string; value: number; of: number; says: string };

/** Figures are counted anew a moment after a change, and reports are limited. */
const AGAIN_MS = 2500;

/** The organizer's view of an event: call what comes back when something of it changed. */
export function selling(id: () => string | null): () => void {
  const shown = () => !$("sales").hidden;
  let due = 0;
  const read = async () => {
    due = 0;
    const event = id();
    if (!shown() || !event || !settings.organizer) return;
    try {
      const sales = (await ask(SALES, { id: event }, settings.organizer)).event?.sales;
      $("sales-state").textContent = sales ? summary(sales) : "This is another organizer's event.";
      draw($("by-section"), "Sold by section", sales ? bySection(sales) : []);
      draw($("by-hour"), "Sold by hour", sales ? byHour(sales) : []);
    } catch {
      $("sales-state").textContent = "The figures can't be read now.";
    }
  };
  const changed = () => { if (shown() && !due) due = window.setTimeout(read, AGAIN_MS); };
  const button = $<HTMLButtonElement>("organize");
  button.hidden = !settings.organizer;
  button.addEventListener("click", () => {
    $("sales").hidden = shown();
    button.setAttribute("aria-expanded", String(shown()));
    void read();
  });
  return changed;
}

const summary = (sales: Sales) =>
  `${sales.sold} of ${sales.capacity} sold, ${sales.held} held, ${price(sales.gross)}; as of ${new Date(sales.asOf).toLocaleTimeString()}.`;

const bySection = (sales: Sales): Bar[] =>
  sales.bySection.map(({ name, sold, capacity, gross }) => ({ name, value: sold, of: capacity, says: `${name}: ${sold} of ${capacity}, ${price(gross)}` }));

function byHour(sales: Sales): Bar[] {
  const hours = sales.byHour.slice(-24);
  const most = Math.max(1, ...hours.map(({ sold }) => sold));
  return hours.map(({ hour, sold, gross }) => {
    const name = new Intl.DateTimeFormat(undefined, { hour: "numeric", day: "numeric", month: "short" }).format(new Date(hour));
    return { name, value: sold, of: most, says: `${name}: ${sold}, ${price(gross)}` };
  });
}

const BAR = 18, WIDTH = 240;

/** Bars that say in words what they show. */
function draw(place: Element, title: string, bars: Bar[]) {
  const chart = svg("svg", { role: "img", "aria-label": `${title}: ${bars.map(({ says }) => says).join("; ") || "nothing yet"}`, viewBox: `0 0 ${WIDTH} ${Math.max(1, bars.length) * BAR}` });
  bars.forEach(({ name, value, of, says }, i) => {
    const hint = svg("title");
    hint.textContent = says;
    const text = svg("text", { x: 4, y: i * BAR + 12 });
    text.textContent = `${name}: ${value}`;
    chart.append(svg("g", {}, hint,
      svg("rect", { class: "of", x: 0, y: i * BAR + 1, width: WIDTH, height: BAR - 3 }),
      svg("rect", { class: "value", x: 0, y: i * BAR + 1, width: (WIDTH * value) / Math.max(1, of), height: BAR - 3 }),
      text));
  });
  place.replaceChildren(make("h3", {}, title), chart);
}
