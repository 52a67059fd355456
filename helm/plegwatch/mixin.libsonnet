// The alerts and dashboards of this folder as a monitoring mixin, for those who render theirs from jsonnet. `_config` has what the chart's values
// have: `namespaces` (a regular expression; the namespaces of the release), `disabled` (names of alerts) and `runbookUrl` (of the folder with the
// pages; none where it is empty).
{
  _config+:: {
    namespaces: '.*',
    disabled: [],
    runbookUrl: '',
  },

  local config = $._config,
  local rule(it) = it + if config.runbookUrl == '' then {} else {
    annotations+: { runbook_url: '%s/%s.md' % [std.rstripChars(config.runbookUrl, '/'), it.alert] },
  },
  local file = std.strReplace(importstr 'alerts.yaml', 'namespace=~".*"', 'namespace=~"%s"' % config.namespaces),

  prometheusAlerts+:: {
    groups+: [
      group { rules: [rule(it) for it in group.rules if !std.member(config.disabled, it.alert)] }
      for group in std.parseYaml(file).groups
    ],
  },

  grafanaDashboards+:: {
    'plegwatch-fleet.json': import 'dashboards/fleet.json',
    'plegwatch-node.json': import 'dashboards/node.json',
    'plegwatch-pipeline.json': import 'dashboards/pipeline.json',
  },
}
