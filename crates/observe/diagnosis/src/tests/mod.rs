mod catalogue;
