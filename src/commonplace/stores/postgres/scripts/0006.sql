-- A tenant's own events in their order: who looks for the last one, or for old ones, does not walk past everybody else's.
create index event_tenant on event (tenant, seq);
