// content - texts of answers and results: tables, diagrams, resources.

export const content = {
  'content.table': 'Table',
  'content.copyCsv': 'Copy as CSV',
  'content.footnotes': 'Footnotes',
  'content.diagram': 'Diagram',
  'content.drawing': 'Drawing the diagram…',
  'content.diagramFailed': 'This diagram could not be drawn: ',
  'content.showSource': 'Show source',
  'content.showDiagram': 'Show diagram',
} as const;
