-- A worker that holds enough of an org's messages claims those of other orgs.
alter table lane add column org_id text;
update lane l set org_id = d.org_id from destination d where d.id = l.lane;
