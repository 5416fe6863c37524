// A page with a timeline and nothing else.
import { byId } from './dom.js';
import { timeline } from './timeline.js';

timeline(byId('timeline'), JSON.parse(byId('data').textContent));
