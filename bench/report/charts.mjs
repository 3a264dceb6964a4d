// Charts as `{ heading, svg }`. The same figures give the same text: a test holds the committed charts to the results.
import * as echarts from 'echarts';

const WIDTH = 860;
/** This library's colour first; the rivals' keep clear of it. */
const OWN = '#0f766e';
const OTHERS = ['#94a3b8', '#cbd5e1', '#64748b', '#d6b98c', '#a78bfa'];
const TEXT = '#1f2937';
const FAINT = '#e5e7eb';
const FONT = 'system-ui, sans-serif';

const title = (text, subtext) => ({
  text,
  subtext,
  left: 12,
  top: 8,
  textStyle: { color: TEXT, fontFamily: FONT, fontSize: 16, fontWeight: 600 },
  subtextStyle: { color: '#6b7280', fontFamily: FONT, fontSize: 12 },
});
const legend = {
  top: 58,
  left: 10,
  icon: 'roundRect',
  itemWidth: 14,
  itemHeight: 10,
  itemGap: 32,
  textStyle: { color: TEXT, fontFamily: FONT },
};
const axisLabel = { color: TEXT, fontFamily: FONT, fontSize: 12 };

function render(heading, unit, height, option) {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  chart.setOption({ title: title(heading, unit), animation: false, backgroundColor: '#ffffff', ...option });
  const svg = chart.renderToSVGString();
  chart.dispose();
  // Nothing happens under a pointer in a picture. What is for that is numbered through the process, and would depend on
  // which charts were drawn before.
  const still = svg
    .replace(/<style[^]*?<\/style>\n?/, '')
    .replaceAll(/ (?:class|ecmeta_\w+)="[^"]*"/g, '')
    .replaceAll(/\bzr\d+-/g, 'zr-');
  return { heading, svg: `${still}\n` };
}

/** Rounded to what a reader can take in: three digits. */
export function digits(value) {
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString('en-US', { maximumFractionDigits: 3 });
}

/**
 * Horizontal bars, a group for each row: `rows` are `{ name, values }` with a value for each of `series`, or undefined
 * where nothing was measured. The first series is this library's; without series, the rows that `own` tells are.
 */
export function bars({ heading, unit, rows, series = [''], own = () => false }) {
  const single = series.length === 1;
  const perRow = single ? 34 : 14 + 19 * series.length;
  const top = single ? 64 : 90;
  const longest = Math.max(...rows.map(({ name }) => name.length));
  return render(heading, unit, top + rows.length * perRow + 24, {
    color: [OWN, ...OTHERS],
    ...(single ? {} : { legend }),
    // Without a browser nobody knows how wide a text is: room for a wide font.
    grid: { left: 24 + 7 * longest, right: 80, top, bottom: 12 },
    xAxis: { type: 'value', axisLabel: { show: false }, splitLine: { lineStyle: { color: FAINT } } },
    yAxis: {
      type: 'category',
      inverse: true,
      data: rows.map(({ name }) => name),
      axisLabel,
      axisTick: { show: false },
      axisLine: { lineStyle: { color: '#9ca3af' } },
    },
    series: series.map((name, i) => ({
      type: 'bar',
      name,
      barWidth: single ? 18 : 15,
      barGap: '20%',
      label: {
        show: true,
        position: 'right',
        color: TEXT,
        fontFamily: FONT,
        formatter: ({ value }) => (value === null ? '' : digits(value)),
      },
      data: rows.map((row) => ({
        value: row.values[i] ?? null,
        ...(single ? { itemStyle: { color: own(row.name) ? OWN : OTHERS[0] } } : {}),
      })),
    })),
  });
}

/** Lines over seconds: `lines` are `{ name, values }`, `spans` grey stretches of time, `level` a line across. */
export function lines({ heading, unit, lines, spans = [], level, logarithmic = false }) {
  return render(heading, unit, 380, {
    color: [OWN, '#dc2626', '#f59e0b'],
    legend,
    grid: { left: 64, right: 24, top: 96, bottom: 52 },
    xAxis: {
      type: 'value',
      min: 0,
      max: Math.max(...lines.map(({ values }) => values.length)),
      name: 'seconds',
      nameLocation: 'middle',
      nameGap: 26,
      nameTextStyle: { color: TEXT, fontFamily: FONT },
      axisLabel,
      splitLine: { show: false },
    },
    yAxis: {
      type: logarithmic ? 'log' : 'value',
      axisLabel: { ...axisLabel, formatter: (value) => digits(value) },
      splitLine: { lineStyle: { color: FAINT } },
    },
    series: lines.map(({ name, values }, i) => ({
      type: 'line',
      name,
      step: 'end',
      symbol: 'none',
      lineStyle: { width: i === 0 ? 3 : 2 },
      // A second's value holds until the next begins.
      data: [...values, values.at(-1)].map((value, second) => [second, value]),
      ...(i === 0
        ? {
            z: 4,
            markArea: {
              silent: true,
              itemStyle: { color: '#f3f4f6' },
              label: { color: '#6b7280', fontFamily: FONT, position: 'insideTop' },
              data: spans.map(({ name: span, from, to }) => [{ name: span, xAxis: from }, { xAxis: to }]),
            },
            ...(level === undefined
              ? {}
              : {
                  markLine: {
                    silent: true,
                    symbol: 'none',
                    z: 1,
                    lineStyle: { color: TEXT, type: 'dashed' },
                    label: {
                      position: 'insideStartTop',
                      formatter: level.name,
                      color: TEXT,
                      fontFamily: FONT,
                    },
                    data: [{ yAxis: level.value }],
                  },
                }),
          }
        : {}),
    })),
  });
}
