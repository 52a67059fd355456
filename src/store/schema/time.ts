/*
 * Times as Postgres writes them with DateStyle ISO, in RFC 3339: in UTC and to the microsecond, whatever the time zone of the session is.
 */

const ISO =
  /^(\d{4,6})(-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?([+-]\d\d)(?::(\d\d))?(?::(\d\d))?( BC)?$/;

/**
 * `infinity` and `-infinity` stay. Years that need more than four digits, or lie before year 0, are as Date writes them: `+012026-…`.
 * Undefined for what is not a time.
 */
export function timeOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  // A year of four digits, in UTC: a page maps tens of thousands of them.
  if (value[4] === '-' && value[10] === ' ' && value.endsWith('+00') && value.length > 21) {
    const fraction = value.slice(20, -3).padEnd(6, '0');
    return `${value.slice(0, 10)}T${value.slice(11, 19)}.${fraction}Z`;
  }
  if (value === 'infinity' || value === '-infinity') return value;
  const parts = ISO.exec(value);
  if (parts === null) return undefined;
  const [, year, day, time, fraction = '', hours = '', minutes = 0, seconds = 0, era] = parts;
  const sign = hours.startsWith('-') ? -1 : 1;
  const ahead = sign * (Math.abs(Number(hours)) * 3600 + Number(minutes) * 60 + Number(seconds));
  const local = Date.parse(`${isoYear(era === undefined ? Number(year) : 1 - Number(year))}${day}T${time}Z`);
  const utc = new Date(local - ahead * 1000);
  if (Number.isNaN(utc.getTime())) return undefined;
  return `${utc.toISOString().slice(0, -5)}.${fraction.padEnd(6, '0')}Z`;
}

function isoYear(year: number): string {
  if (year >= 0 && year <= 9999) return String(year).padStart(4, '0');
  return `${year < 0 ? '-' : '+'}${String(Math.abs(year)).padStart(6, '0')}`;
}
